"""What a drive is: its description and policies, and the file of what was found out about one."""
