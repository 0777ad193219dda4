//! The allocator: a bump pointer over what the first page of memory has left behind the stack and the
//! constants (more than 40 KiB), and over fresh pages where that is too small.
//!
//! An instance lives for one call, so nothing needs to be given back. A memory that never grows costs
//! the host no system call, and one of a single page little to clear: both are paid on every call.

#![cfg(target_arch = "wasm32")]

use core::arch::wasm32;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ptr;

const PAGE_BYTES: usize = 64 << 10;

unsafe extern "C" {
    /// Where the linker has put nothing any more.
    static __heap_base: u8;
}

struct Arena {
    /// The free part; zero until the first allocation.
    next: Cell<usize>,
    end: Cell<usize>,
}

#[global_allocator]
static ARENA: Arena = Arena { next: Cell::new(0), end: Cell::new(0) };

// SAFETY: a policy is called on one thread, once.
unsafe impl Sync for Arena {}

// SAFETY: every block lies between `next` and `end`, which only move over memory that is this
// arena's alone: what the linker left free, or pages just grown.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if self.next.get() == 0 {
            self.next.set(&raw const __heap_base as usize);
            self.end.set(wasm32::memory_size(0) * PAGE_BYTES);
        }
        match self.fit(layout).or_else(|| self.grow(layout)) {
            Some(start) => start as *mut u8,
            None => ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let start = block as usize;
        let is_last = start + layout.size() == self.next.get();
        if size <= layout.size() {
            return block;
        }
        if is_last && size <= self.end.get() - start {
            self.next.set(start + size);
            return block;
        }
        // SAFETY: the alignment is that of an existing layout and the size is the caller's promise.
        let moved = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !moved.is_null() {
            // SAFETY: the new block is apart from the old one and larger.
            unsafe { ptr::copy_nonoverlapping(block, moved, layout.size()) };
        }
        moved
    }
}

impl Arena {
    fn fit(&self, layout: Layout) -> Option<usize> {
        let start = self.next.get().checked_next_multiple_of(layout.align())?;
        let next = start.checked_add(layout.size())?;
        (next <= self.end.get()).then(|| {
            self.next.set(next);
            start
        })
    }

    fn grow(&self, layout: Layout) -> Option<usize> {
        let pages = layout.size().checked_add(layout.align())?.div_ceil(PAGE_BYTES);
        let before = wasm32::memory_grow(0, pages);
        if before == usize::MAX {
            return None;
        }
        let start = before * PAGE_BYTES;
        if self.end.get() != start {
            self.next.set(start);
        }
        self.end.set(start.saturating_add(pages.saturating_mul(PAGE_BYTES)));
        self.fit(layout)
    }
}
