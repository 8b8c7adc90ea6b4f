//! The memory of filters, for servers that track and move it.

use crate::filter::growing::Growing;
use crate::filter::shell::Filter;
use crate::raw::shape::Shaped;

macro_rules! heap {
    ($type:ident $(<$layout:ident: $bound:ident>)?) => {
        impl$(<$layout: $bound>)? $type$(<$layout>)? {
            /// The addresses of all memory of the filter, each with its alignment. Needs the
            /// feature `plain-heap`.
            #[must_use]
            #[doc(hidden)]
            pub fn allocations(&self) -> Vec<(*const u8, usize)> {
                let bodies = self.all_words().into_iter();
                let mut all: Vec<_> = bodies.map(|words| (words.as_ptr().cast(), 64)).collect();
                all.extend(self.lists());
                all
            }

            /// Has `mover` move the body's memory: it gets the address and length of each
            /// allocation, and returns the new address or the same. Needs the feature `plain-heap`;
            /// mapped memory stays.
            ///
            /// # Safety
            /// - `mover` returns the address it was given, or memory of the
            ///   global allocator with the same length, alignment (64 bytes) and
            ///   content.
            /// - In the second case it has freed the old memory.
            /// - It does not panic.
            #[doc(hidden)]
            pub unsafe fn relocate(&mut self, mover: &mut dyn FnMut(*mut u8, usize) -> *mut u8) {
                for body in self.bodies_mut() {
                    // SAFETY: the caller's promise is the same.
                    unsafe { body.relocate(mover) };
                }
            }
        }
    };
}

heap!(Filter<L: Shaped>);
heap!(Growing);
