use std::sync::Arc;

/// A node's data, to keep: shared with the tree where it is large, copied where copying is cheaper than sharing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Data(Arc<[u8]>);

impl Data {
    pub(crate) fn copied(bytes: &[u8]) -> Data {
        Data(Arc::from(bytes))
    }
}

impl std::ops::Deref for Data {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Names and data that are too large for the slabs: each an allocation of its own, by number.
#[derive(Debug, Default)]
pub(crate) struct Large {
    all: Vec<Option<Data>>,
    free: Vec<u32>,
}

impl Large {
    pub(crate) fn insert(&mut self, bytes: &[u8]) -> u32 {
        let data = Some(Data::copied(bytes));
        if let Some(number) = self.free.pop() {
            self.all[number as usize] = data;
            return number;
        }
        self.all.push(data);
        u32::try_from(self.all.len() - 1).expect("at most two for each node")
    }

    pub(crate) fn remove(&mut self, number: u32) {
        self.all[number as usize] = None;
        self.free.push(number);
    }

    pub(crate) fn get(&self, number: u32) -> &Data {
        self.all[number as usize].as_ref().expect("a number that is in use")
    }
}
