use std::fmt;

use super::flaw::Flaw;
use super::input::Input;

/// Several paths in order: gathered by a leader, or still as a decoded txn has them. Both compare by the paths.
#[derive(Clone, Copy)]
pub struct Paths<'a>(Form<'a>);

#[derive(Clone, Copy)]
enum Form<'a> {
    Slice(&'a [String]),
    /// So many, one behind the other; `read` has gone through them once.
    Encoded {
        count: u32,
        bytes: &'a [u8],
    },
}

impl<'a> Paths<'a> {
    /// These paths.
    ///
    /// # Panics
    /// If there are 2^32 or more.
    pub fn from_slice(paths: &'a [String]) -> Paths<'a> {
        assert!(u32::try_from(paths.len()).is_ok(), "{} paths are more than a txn takes", paths.len());
        Paths(Form::Slice(paths))
    }

    /// How many there are.
    pub fn len(self) -> usize {
        match self.0 {
            Form::Slice(paths) => paths.len(),
            Form::Encoded { count, .. } => count as usize,
        }
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The paths in order.
    pub fn iter(self) -> impl Iterator<Item = &'a str> {
        // One half of the chain is empty.
        let (slice, bytes): (&[String], &[u8]) = match self.0 {
            Form::Slice(paths) => (paths, &[]),
            Form::Encoded { bytes, .. } => (&[], bytes),
        };
        let mut input = Input::new(bytes);
        let encoded = std::iter::from_fn(move || {
            (!input.is_empty()).then(|| input.path().expect("reading the list has read each of its paths"))
        });
        slice.iter().map(String::as_str).chain(encoded)
    }

    /// Reads a list. What it takes is bounded by the input, whatever the count says: a path has bytes.
    pub(super) fn read(input: &mut Input<'a>) -> Result<Paths<'a>, Flaw> {
        let count = input.u32()?;
        let start = *input;
        for _ in 0..count {
            input.path()?;
        }
        Ok(Paths(Form::Encoded { count, bytes: input.read_since(start) }))
    }
}

impl PartialEq for Paths<'_> {
    fn eq(&self, other: &Paths<'_>) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Paths<'_> {}

impl fmt::Debug for Paths<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
