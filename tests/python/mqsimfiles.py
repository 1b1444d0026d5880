"""Files such as MQSim reads, made here: every element of its sets once, with values of our own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["FLASH", "HOST", "SSD", "SYNTHETIC", "TRACE", "config", "scenarios", "write"]

HOST = {
    "PCIe_Lane_Bandwidth": "0.5",
    "PCIe_Lane_Count": "2",
    "SATA_Processing_Delay": "1000",
    "Enable_ResponseTime_Logging": "false",
    "ResponseTime_Logging_Period_Length": "2000000",
}
SSD = {
    "Seed": "7",
    "Enabled_Preconditioning": "true",
    "Memory_Type": "FLASH",
    "HostInterface_Type": "NVME",
    "IO_Queue_Depth": "64",
    "Queue_Fetch_Size": "128",
    "Caching_Mechanism": "ADVANCED",
    "Data_Cache_Sharing_Mode": "SHARED",
    "Data_Cache_Capacity": "1048576",
    "Data_Cache_DRAM_Row_Size": "8192",
    "Data_Cache_DRAM_Data_Rate": "1000",
    "Data_Cache_DRAM_Data_Busrt_Size": "4",
    "Data_Cache_DRAM_tRCD": "10",
    "Data_Cache_DRAM_tCL": "11",
    "Data_Cache_DRAM_tRP": "12",
    "Address_Mapping": "PAGE_LEVEL",
    "Ideal_Mapping_Table": "true",
    "CMT_Capacity": "4096",
    "CMT_Sharing_Mode": "SHARED",
    "Plane_Allocation_Scheme": "WCDP",
    "Transaction_Scheduling_Policy": "OUT_OF_ORDER",
    "Overprovisioning_Ratio": "0.3",
    "GC_Exec_Threshold": "0.05",
    "GC_Block_Selection_Policy": "RGA",
    "Use_Copyback_for_GC": "false",
    "Preemptible_GC_Enabled": "false",
    "GC_Hard_Threshold": "0.02",
    "Dynamic_Wearleveling_Enabled": "true",
    "Static_Wearleveling_Enabled": "true",
    "Static_Wearleveling_Threshold": "100",
    "Preferred_suspend_erase_time_for_read": "1000",
    "Preferred_suspend_erase_time_for_write": "1000",
    "Preferred_suspend_write_time_for_read": "1000",
    "Flash_Channel_Count": "2",
    "Flash_Channel_Width": "1",
    "Channel_Transfer_Rate": "100",
    "Chip_No_Per_Channel": "2",
    "Flash_Comm_Protocol": "NVDDR2",
}
FLASH = {
    "Flash_Technology": "SLC",
    "CMD_Suspension_Support": "NONE",
    "Page_Read_Latency_LSB": "40000",
    "Page_Read_Latency_CSB": "50000",
    "Page_Read_Latency_MSB": "60000",
    "Page_Program_Latency_LSB": "300000",
    "Page_Program_Latency_CSB": "500000",
    "Page_Program_Latency_MSB": "700000",
    "Block_Erase_Latency": "2000000",
    "Block_PE_Cycles_Limit": "5000",
    "Suspend_Erase_Time": "6000",
    "Suspend_Program_Time": "4000",
    "Die_No_Per_Chip": "1",
    "Plane_No_Per_Die": "1",
    "Block_No_Per_Plane": "200",
    "Page_No_Per_Block": "32",
    "Page_Capacity": "4096",
    "Page_Metadat_Capacity": "64",
}
_FLOW = {
    "Priority_Class": "HIGH",
    "Device_Level_Data_Caching_Mode": "TURNED_OFF",
    "Channel_IDs": "0,1",
    "Chip_IDs": "0,1",
    "Die_IDs": "0",
    "Plane_IDs": "0",
    "Initial_Occupancy_Percentage": "100",
}
SYNTHETIC = {
    **_FLOW,
    "Working_Set_Percentage": "100",
    "Synthetic_Generator_Type": "QUEUE_DEPTH",
    "Read_Percentage": "0",
    "Address_Distribution": "RANDOM_UNIFORM",
    "Percentage_of_Hot_Region": "20",
    "Generated_Aligned_Addresses": "true",
    "Address_Alignment_Unit": "8",
    "Request_Size_Distribution": "FIXED",
    "Average_Request_Size": "8",
    "Variance_Request_Size": "0",
    "Seed": "11",
    "Average_No_of_Reqs_in_Queue": "1",
    "Bandwidth": "40960000",
    "Intensity": "1",
    "Stop_Time": "0",
    "Total_Requests_To_Generate": "2000",
}
TRACE = {
    **_FLOW,
    "File_Path": "requests.trace",
    "Percentage_To_Be_Executed": "50",
    "Relay_Count": "2",
    "Time_Unit": "NANOSECOND",
}


def _elements(values: Mapping[str, str | None]) -> str:
    return "".join(
        f"<{name}>{value}</{name}>\n" for name, value in values.items() if value is not None
    )


def config(changes: Mapping[str, str | None] | None = None, extra: str = "") -> str:
    """The file of the SSD, with other values; an element whose value is None is left out.

    Parameters
    ----------
    changes : mapping of str, optional
        By element.
    extra : str, optional
        More XML, at the end of the set of the device.
    """
    changes = changes or {}
    host, ssd, flash = (
        {**each, **{k: changes[k] for k in each if k in changes}} for each in (HOST, SSD, FLASH)
    )
    return (
        '<?xml version="1.0" encoding="us-ascii"?>\n<Execution_Parameter_Set>\n'
        f"<Host_Parameter_Set>\n{_elements(host)}</Host_Parameter_Set>\n"
        f"<Device_Parameter_Set>\n{_elements(ssd)}{extra}"
        f"<Flash_Parameter_Set>\n{_elements(flash)}</Flash_Parameter_Set>\n"
        "</Device_Parameter_Set>\n</Execution_Parameter_Set>\n"
    )


def scenarios(*flows: Mapping[str, str | None]) -> str:
    """The file of the scenarios: one, with these flows, each with what differs from the usual one."""
    text = ""
    for flow in flows:
        is_trace = "File_Path" in flow
        kind = f"IO_Flow_Parameter_Set_{'Trace_Based' if is_trace else 'Synthetic'}"
        text += f"<{kind}>\n{_elements({**(TRACE if is_trace else SYNTHETIC), **flow})}</{kind}>\n"
    return f"<MQSim_IO_Scenarios>\n<IO_Scenario>\n{text}</IO_Scenario>\n</MQSim_IO_Scenarios>\n"


def write(folder: Path, ssd: str, flows: str | None = None) -> list[Path]:
    """Both files, as arguments of the conversion."""
    paths = [folder / "ssd.xml"]
    paths[0].write_text(ssd)
    if flows is not None:
        paths.append(folder / "flows.xml")
        paths[1].write_text(flows)
    return paths
