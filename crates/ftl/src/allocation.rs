//! The order in which planes take the host's pages.
//!
//! Drives stripe writes over their planes. Those that clean whole stripes (pblk's lines, the lines of FEMU and NVMeVirt, superblocks)
//! need no more than the order, because a stripe that is cleaned frees as much in every plane. A drive that cleans plane by plane must
//! also watch how full the planes are. In strict turn, a host that writes each page twice in a row leaves the first, dead copies in the
//! even planes and the lasting ones in the odd planes; these then clean nearly full blocks. It happens wherever the number of planes and
//! the period in which pages are rewritten share a factor: at a request of half a page, a log that appends, a misaligned partition.
//! [`Allocation::ByRoom`] therefore passes over a plane that has less room than the others ([`crate::planes`]).

use flashwright_nand::Geometry;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;
use std::str::FromStr;

/// How a page finds its plane: `placement.allocation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Allocation {
    /// Planes take turns as pages are written. Where their room is uneven, turns begin with another plane, so that what lasts does not gather
    /// in some of them; one that is short of whole blocks sits a block out.
    #[default]
    ByRoom,
    /// Planes take turns as pages are written, however full they are; only one that can't take a page is skipped. Where papers
    /// describe dynamic allocation, they mean this.
    Dynamic,
    /// The logical page number determines the plane, permanently.
    Static,
}

/// The order in which channel, way, die and plane vary from one page to the next, fastest first: `CWDP` means that
/// consecutive pages go to different channels, then to different ways (packages) of a channel, and so on.
///
/// ```
/// # use flashwright_ftl::AllocationOrder;
/// # use flashwright_nand::Geometry;
/// # use flashwright_block::Bytes;
/// let order: AllocationOrder = "CWDP".parse().unwrap();
/// // two channels of two dies: planes 0 and 1 are on channel 0
/// let planes = order.planes(&Geometry::new(2, 2, 1, 4, 4, Bytes(4096)), 1);
/// assert_eq!(planes, [0, 2, 1, 3]);
/// assert!("CWDD".parse::<AllocationOrder>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationOrder([Digit; 4]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Digit {
    Channel,
    Way,
    Die,
    Plane,
}

impl Digit {
    const ALL: [(char, Digit); 4] = [('C', Digit::Channel), ('W', Digit::Way), ('D', Digit::Die), ('P', Digit::Plane)];
}

impl Default for AllocationOrder {
    fn default() -> Self {
        Self([Digit::Channel, Digit::Way, Digit::Die, Digit::Plane])
    }
}

impl FromStr for AllocationOrder {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let fail = || format!("found {text:?}, expected the letters C, W, D and P once each, such as \"CWDP\"");
        let digits: Vec<Digit> = text
            .chars()
            .map(|letter| Digit::ALL.iter().find(|(l, _)| *l == letter).map(|(_, digit)| *digit))
            .collect::<Option<_>>()
            .ok_or_else(fail)?;
        let complete = Digit::ALL.iter().all(|(_, digit)| digits.contains(digit));
        <[Digit; 4]>::try_from(digits).ok().filter(|_| complete).map(Self).ok_or_else(fail)
    }
}

flashwright_block::registry::text_schema!(
    AllocationOrder,
    { "type": "string", "x-takes": "the letters C, W, D and P once each" }
);

impl fmt::Display for AllocationOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|digit| {
            let (letter, _) = Digit::ALL.iter().find(|(_, d)| d == digit).expect("all digits have a letter");
            write!(f, "{letter}")
        })
    }
}

impl Serialize for AllocationOrder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AllocationOrder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl AllocationOrder {
    /// The planes in the order in which they take turns. `dies_per_way` dies of a channel share a package.
    #[must_use]
    pub fn planes(&self, geometry: &Geometry, dies_per_way: u32) -> Vec<u32> {
        let radix = |digit: Digit| match digit {
            Digit::Channel => geometry.channels(),
            Digit::Way => geometry.dies_per_channel() / dies_per_way,
            Digit::Die => dies_per_way,
            Digit::Plane => geometry.planes_per_die(),
        };
        (0..geometry.planes())
            .map(|turn| {
                let (mut rest, mut digits) = (turn, [0u32; 4]);
                for digit in self.0 {
                    digits[digit as usize] = rest % radix(digit);
                    rest /= radix(digit);
                }
                let [channel, way, die, plane] = digits;
                ((channel * geometry.dies_per_channel() + way * dies_per_way) + die) * geometry.planes_per_die() + plane
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::Bytes;

    /// 2 channels x 2 ways x 2 dies x 2 planes; the first eight planes in order, worked out on paper.
    #[test]
    fn digits_count_off_planes() {
        let geometry = Geometry::new(2, 4, 2, 1, 4, Bytes(4096));
        let turns = |order: &str| order.parse::<AllocationOrder>().unwrap().planes(&geometry, 2)[..8].to_vec();
        // plane id = ((channel * 4 + way * 2 + die) * 2) + plane
        assert_eq!(turns("CWDP"), [0, 8, 4, 12, 2, 10, 6, 14]);
        assert_eq!(turns("PDWC"), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(turns("WPCD"), [0, 4, 1, 5, 8, 12, 9, 13]);
    }

    #[test]
    fn text_round_trips() {
        for text in ["CWDP", "PDWC", "DPCW"] {
            assert_eq!(text.parse::<AllocationOrder>().unwrap().to_string(), text);
        }
    }
}
