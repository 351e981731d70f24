/// Things with numbers, which stay the same as long as the thing is there and are then used again.
#[derive(Debug)]
pub(super) struct Slab<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T: Default> Slab<T> {
    pub(super) fn new() -> Slab<T> {
        Slab { items: Vec::new(), free: Vec::new() }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.items.len() - self.free.len()
    }

    /// Takes a thing in and numbers it.
    pub(super) fn insert(&mut self, item: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.items[number as usize] = item;
            return number;
        }
        if self.items.len() == self.items.capacity() {
            // In small steps, so that little of it is unused.
            self.items.reserve_exact(self.items.len() / 16 + 4);
        }
        self.items.push(item);
        u32::try_from(self.items.len() - 1).expect("the limits of a table are 32 bits")
    }

    /// Drops a thing. When the last one goes, so does the memory.
    pub(super) fn remove(&mut self, number: u32) {
        self.items[number as usize] = T::default();
        self.free.push(number);
        if self.len() == 0 {
            *self = Slab::new();
        }
    }

    pub(super) fn at(&self, number: u32) -> &T {
        &self.items[number as usize]
    }

    pub(super) fn at_mut(&mut self, number: u32) -> &mut T {
        &mut self.items[number as usize]
    }

    /// All places with their numbers, in use or not.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.items)
    }

    /// All places, in use or not.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.items.iter_mut()
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.items.capacity() + self.free.capacity()
    }
}
