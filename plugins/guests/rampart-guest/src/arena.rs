//! The allocator: a bump pointer over the rest of the first page of memory, behind the stack and the
//! constants (more than 40 KiB), and over new pages where that is too small.
//!
//! An instance lives for one call, so nothing is ever freed. A memory that never grows costs
//! the host no system call, and one of a single page little to clear: both are paid on every call.

#![cfg(target_arch = "wasm32")]

use core::arch::wasm32;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ptr;

const PAGE_BYTES: usize = 64 << 10;

unsafe extern "C" {
    /// End of the memory used by the linker.
    static __heap_base: u8;
}

struct Arena {
    /// Start of the free part.
    next: Cell<*const u8>,
    /// End of the free part; zero until the first allocation.
    end: Cell<usize>,
}

#[global_allocator]
static ARENA: Arena = Arena { next: Cell::new(&raw const __heap_base), end: Cell::new(0) };

/// Allocates memory for each text and list that the host passes (`realloc` of the canonical ABI of
/// the component model). Called dozens of times per call, so it is one function, not the usual three.
#[unsafe(no_mangle)]
unsafe extern "C" fn cabi_realloc(
    block: *mut u8,
    old_size: usize,
    align: usize,
    size: usize,
) -> *mut u8 {
    if size == 0 {
        return ptr::without_provenance_mut(align);
    }
    // SAFETY: the canonical ABI gives the size and the alignment that it gave before, and an
    // alignment that is a power of two.
    let allocated = unsafe {
        match old_size {
            0 => ARENA.alloc(Layout::from_size_align_unchecked(size, align)),
            _ => ARENA.realloc(block, Layout::from_size_align_unchecked(old_size, align), size),
        }
    };
    if allocated.is_null() {
        wasm32::unreachable();
    }
    allocated
}

// SAFETY: a policy is called on one thread, once.
unsafe impl Sync for Arena {}

// SAFETY: every block lies between `next` and `end`, which only move over memory that is this
// arena's alone: what the linker left free, or pages just grown.
unsafe impl GlobalAlloc for Arena {
    #[inline(always)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.fit(layout) {
            Some(block) => block,
            None => self.grow(layout),
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let start = block as usize;
        let is_last = start + layout.size() == self.next.get() as usize;
        if size <= layout.size() {
            return block;
        }
        if is_last && size <= self.end.get() - start {
            self.next.set((start + size) as *const u8);
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
    #[inline(always)]
    fn fit(&self, layout: Layout) -> Option<*mut u8> {
        // An alignment is a power of two, so rounding up to it takes no division.
        let below = layout.align() - 1;
        let start = (self.next.get() as usize).checked_add(below)? & !below;
        let next = start.checked_add(layout.size())?;
        (next <= self.end.get()).then(|| {
            self.next.set(next as *const u8);
            start as *mut u8
        })
    }

    /// Null where there is no more.
    #[cold]
    fn grow(&self, layout: Layout) -> *mut u8 {
        if self.end.get() == 0 {
            self.end.set(wasm32::memory_size(0) * PAGE_BYTES);
        } else {
            let pages = layout.size().saturating_add(layout.align()).div_ceil(PAGE_BYTES);
            let before = wasm32::memory_grow(0, pages);
            if before == usize::MAX {
                return ptr::null_mut();
            }
            let start = before * PAGE_BYTES;
            if self.end.get() != start {
                self.next.set(start as *const u8);
            }
            self.end.set(start.saturating_add(pages.saturating_mul(PAGE_BYTES)));
        }
        match self.fit(layout) {
            Some(block) => block,
            None => self.grow(layout),
        }
    }
}
