use super::arena::{Arena, PIECE_BYTES};

/// Places are counted in units of so many bytes.
pub(crate) const UNIT: usize = 8;
/// Above so many units, sizes are `COARSE` units apart.
const FINE_MAX: usize = 64;
const COARSE: usize = 8;
const PAGE_UNITS: u32 = 4096;
/// Places are numbers of 32 bits.
const PAGES_MAX: usize = (1 << 20) - 1;
const NO_SLOT: u16 = u16::MAX;

const _: () = assert!(PAGE_UNITS as usize * UNIT == PIECE_BYTES);

/// Memory for many small things. Each has a place, which is its address in units, and stays there as long as it is in
/// use. Pages hold places of one size; a page that is all free may become one of another size.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    arena: Arena,
    pages: Vec<Page>,
    /// Pages of which no place is in use.
    empty: Vec<u32>,
    /// For each size in units the pages that have room, and some that have been emptied since.
    open: Vec<Vec<u32>>,
}

#[derive(Debug)]
struct Page {
    /// The size of its places; 0 while it is empty.
    units: u16,
    used: u16,
    /// Slots from this one on were never used.
    fresh: u16,
    /// The first of the free slots before; each has the number of the next.
    free: u16,
}

impl Page {
    fn slots(&self) -> u16 {
        slots(self.units)
    }
}

fn slots(units: u16) -> u16 {
    u16::try_from(PAGE_UNITS).expect("small") / units
}

/// The size of a place for so many bytes.
pub(crate) fn units_of(bytes: usize) -> u16 {
    let fine = bytes.div_ceil(UNIT).max(1);
    let units = if fine <= FINE_MAX { fine } else { fine.next_multiple_of(COARSE) };
    u16::try_from(units).expect("much less than a page")
}

impl Slab {
    /// A place of `units`. What stands there is not said. `None` if all of the 32 GiB are in use.
    pub(crate) fn take(&mut self, units: u16) -> Option<u32> {
        let number = self.open_page(units)?;
        let page = &mut self.pages[number as usize];
        let from_free = page.free != NO_SLOT;
        let slot = if from_free { page.free } else { page.fresh };
        let place = number * PAGE_UNITS + u32::from(slot) * u32::from(units);
        if from_free {
            let next = self.arena.at(place as usize * UNIT).first_chunk().expect("a place has eight bytes");
            page.free = u16::from_le_bytes(*next);
        } else {
            page.fresh += 1;
        }
        page.used += 1;
        if page.used == page.slots() {
            self.open[usize::from(units)].pop();
        }
        Some(place)
    }

    /// A page with room, at the end of its list.
    fn open_page(&mut self, units: u16) -> Option<u32> {
        if self.open.len() <= usize::from(units) {
            self.open.resize_with(usize::from(units) + 1, Vec::new);
        }
        let open = &mut self.open[usize::from(units)];
        while let Some(&number) = open.last() {
            if self.pages[number as usize].units == units {
                return Some(number);
            }
            open.pop();
        }
        let page = Page { units, used: 0, fresh: 0, free: NO_SLOT };
        let number = if let Some(number) = self.empty.pop() {
            self.pages[number as usize] = page;
            number
        } else if self.pages.len() < PAGES_MAX {
            self.arena.add();
            self.pages.push(page);
            u32::try_from(self.pages.len() - 1).expect("at most PAGES_MAX")
        } else {
            return None;
        };
        open.push(number);
        Some(number)
    }

    /// Frees a place. Its first two bytes are overwritten.
    pub(crate) fn give_back(&mut self, place: u32) {
        let number = place / PAGE_UNITS;
        let page = &mut self.pages[number as usize];
        let units = page.units;
        let slot = u16::try_from(place % PAGE_UNITS).expect("less than a page") / units;
        let was_full = page.used == page.slots();
        self.arena.at_mut(place as usize * UNIT)[..2].copy_from_slice(&page.free.to_le_bytes());
        page.free = slot;
        page.used -= 1;
        if page.used == 0 {
            // In its list it stays; who meets it there sees that it has another size.
            page.units = 0;
            self.empty.push(number);
        } else if was_full {
            self.open[usize::from(units)].push(number);
        }
    }

    /// The bytes of a place, and more behind it.
    #[inline]
    pub(crate) fn bytes(&self, place: u32) -> &[u8] {
        self.arena.at(place as usize * UNIT)
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self, place: u32) -> &mut [u8] {
        self.arena.at_mut(place as usize * UNIT)
    }

    /// The first place, at `from` or behind it, that is or was in use.
    pub(crate) fn next(&self, from: u32) -> Option<u32> {
        let mut within = from % PAGE_UNITS;
        for number in from / PAGE_UNITS..u32::try_from(self.pages.len()).expect("at most PAGES_MAX") {
            let page = &self.pages[number as usize];
            if page.units > 0 {
                let units = u32::from(page.units);
                let slot = within.div_ceil(units);
                if slot < u32::from(page.fresh) {
                    return Some(number * PAGE_UNITS + slot * units);
                }
            }
            within = 0;
        }
        None
    }

    /// Behind all places.
    pub(crate) fn end(&self) -> u32 {
        u32::try_from(self.pages.len()).expect("at most PAGES_MAX") * PAGE_UNITS
    }

    /// The memory of all pages.
    pub(crate) fn memory(&self) -> u64 {
        self.arena.bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_length_fits_its_size() {
        for bytes in 0..=4096 {
            let room = usize::from(units_of(bytes)) * UNIT;
            assert!(room >= bytes && room - bytes < if bytes <= 512 { 9 } else { 64 }, "{bytes}");
        }
    }

    #[test]
    fn places_keep_their_bytes_and_are_used_again_by_any_size() {
        let mut slab = Slab::default();
        let mut random = crate::base::Random::from_seed(1);
        let mut held: BTreeMap<u32, (u16, u8)> = BTreeMap::new();
        let sizes = [1, 7, 21, 64, 72, 512];
        for turn in 0..60_000_u64 {
            // Fills and empties itself, in turns of another size.
            let grow = turn / 2_000 % 2 == 0;
            if grow || held.is_empty() {
                let units = sizes[usize::try_from(turn / 4_000).unwrap() % sizes.len()];
                let place = slab.take(units).unwrap();
                let mark = random.next_u64().to_le_bytes()[0];
                slab.bytes_mut(place)[..usize::from(units) * UNIT].fill(mark);
                assert_eq!(held.insert(place, (units, mark)), None);
            } else {
                let at = u32::try_from(random.next_u64() % u64::from(slab.end())).unwrap();
                let place = held.range(at..).next().or(held.iter().next()).map(|(place, _)| *place).unwrap();
                let (units, mark) = held.remove(&place).unwrap();
                assert!(slab.bytes(place)[..usize::from(units) * UNIT].iter().all(|b| *b == mark));
                slab.give_back(place);
            }
        }
        let mut met = Vec::new();
        let mut from = 0;
        while let Some(place) = slab.next(from) {
            met.push(place);
            from = place + 1;
        }
        assert!(held.keys().all(|place| met.binary_search(place).is_ok()));
        held.keys().for_each(|place| slab.give_back(*place));
        assert_eq!(slab.empty.len(), slab.pages.len());
        assert_eq!(slab.next(0), None);
        // 2,000 of the largest take 250 pages, and the smaller ones found room there.
        assert!(slab.pages.len() <= 260, "{}", slab.pages.len());
        let lists: usize = slab.open.iter().map(Vec::len).sum();
        assert!(lists <= slab.pages.len() * 2, "{lists}");
    }
}
