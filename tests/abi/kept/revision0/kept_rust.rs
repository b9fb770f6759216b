// SPDX-License-Identifier: Apache-2.0
// A device in Rust, as a vendor shipped it: the required functions, without the standard library.
#![no_std]

use core::ffi::c_void;
use core::mem::size_of;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

#[path = "abi.rs"]
mod abi;
use abi::*;

extern "C" {
    fn aligned_alloc(align: usize, bytes: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
    fn abort() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    unsafe { abort() }
}

#[used]
#[link_section = ".note.tenon"]
static NOTE: Note = Note {
    name_size: 6,
    desc_size: size_of::<Note>() as u32 - 20,
    note_type: 1,
    owner: padded(b"TENON"),
    epoch_min: ABI_EPOCH,
    epoch_max: ABI_EPOCH,
    sanitizer: 0,
    reserved: 0,
    name: padded(b"kept_rust"),
    version: padded(b"1.0.0"),
    json: padded(b"{\"kind\":\"device\",\"devices\":[\"keptrust\"]}"),
};

static HOST: AtomicPtr<Host> = AtomicPtr::new(ptr::null_mut());

unsafe fn fail(err: *mut Err, code: Status, text: &str) -> Status {
    let host = HOST.load(Ordering::Relaxed);
    ((*host).fail)(err, code, 0, text.as_ptr(), text.len() as u64);
    code
}

unsafe extern "C" fn enumerate(out: *mut DeviceInfo, capacity: u32, count: *mut u32, _: *mut Err) -> Status {
    if capacity > 0 {
        *out = DeviceInfo {
            struct_size: size_of::<DeviceInfo>() as u32,
            flags: 0,
            name: padded(b"Kept Rust device"),
            arch: padded(b"crab"),
            bus_id: [0; 32],
            memory_bytes: 0,
            dl_device_type: 12,
            reserved: 0,
        };
    }
    *count = 1;
    OK
}

unsafe extern "C" fn open(index: u32, out: *mut *mut DeviceHandle, err: *mut Err) -> Status {
    static BOARD: u8 = 0;
    if index != 0 {
        return fail(err, NOT_FOUND, "keptrust: there is only device 0");
    }
    *out = &raw const BOARD as *mut DeviceHandle;
    OK
}

unsafe extern "C" fn close(_: *mut DeviceHandle) {}

unsafe extern "C" fn alloc(
    _: *mut DeviceHandle,
    request: *const AllocRequest,
    out: *mut *mut c_void,
    err: *mut Err,
) -> Status {
    if (*request).must_understand != 0 {
        return fail(err, UNSUPPORTED, "keptrust: the request needs a feature that this plugin does not know");
    }
    let align = (*request).align as usize;
    let Some(bytes) = ((*request).bytes as usize).checked_next_multiple_of(align) else {
        return fail(err, OUT_OF_MEMORY, "keptrust: out of memory");
    };
    let memory = aligned_alloc(align, bytes);
    if memory.is_null() {
        return fail(err, OUT_OF_MEMORY, "keptrust: out of memory");
    }
    *out = memory;
    OK
}

unsafe extern "C" fn release(_: *mut DeviceHandle, memory: *mut c_void, _: u64, _: *mut StreamHandle) {
    free(memory)
}

unsafe extern "C" fn copy(_: *mut DeviceHandle, request: *const CopyRequest, err: *mut Err) -> Status {
    if (*request).must_understand != 0 {
        return fail(err, UNSUPPORTED, "keptrust: the request needs a feature that this plugin does not know");
    }
    if (*request).bytes > 0 {
        ptr::copy((*request).src as *const u8, (*request).dst as *mut u8, (*request).bytes as usize);
    }
    OK
}

unsafe extern "C" fn fill(
    _: *mut DeviceHandle,
    dst: *mut c_void,
    offset: u64,
    bytes: u64,
    pattern: *const c_void,
    pattern_bytes: u32,
    _: *mut StreamHandle,
    _: *mut Err,
) -> Status {
    let begin = (dst as *mut u8).add(offset as usize);
    let mut done = 0;
    while done < bytes as usize {
        ptr::copy(pattern as *const u8, begin.add(done), pattern_bytes as usize);
        done += pattern_bytes as usize;
    }
    OK
}

unsafe extern "C" fn sync(_: *mut DeviceHandle, _: *mut StreamHandle, _: *mut Err) -> Status {
    OK
}

unsafe extern "C" fn stop(_: *mut Err) -> Status {
    OK
}

// Tables hold pointers to what never changes.
#[repr(transparent)]
struct Table<T>(T);
unsafe impl<T> Sync for Table<T> {}

static DEVICE: Table<DeviceApi> = Table(DeviceApi {
    struct_size: size_of::<DeviceApi>() as u32,
    revision: ABI_REVISION,
    features: 0,
    kind: c"keptrust".as_ptr(),
    enumerate,
    open,
    close,
    alloc,
    free: release,
    copy,
    fill,
    sync,
    async_group: ptr::null(),
});

static PLUGIN: Table<Plugin> = Table(Plugin {
    struct_size: size_of::<Plugin>() as u32,
    revision: ABI_REVISION,
    features: 0,
    name: c"kept_rust".as_ptr(),
    version: c"1.0.0".as_ptr(),
    vendor: c"Yesterday Ltd.".as_ptr(),
    device: &DEVICE.0,
    ops: ptr::null(),
    kernels: ptr::null(),
    nops: 0,
    op_size: 0,
    nkernels: 0,
    kernel_size: 0,
    start: None,
    stop: Some(stop),
});

#[no_mangle]
pub unsafe extern "C" fn tenon_plugin_query(
    host_min: u32,
    host_max: u32,
    host: *const Host,
    err: *mut Err,
) -> *const Plugin {
    HOST.store(host as *mut Host, Ordering::Relaxed);
    if host_min > ABI_EPOCH || host_max < ABI_EPOCH {
        fail(err, UNSUPPORTED, "keptrust: this plugin speaks ABI epoch 1");
        return ptr::null();
    }
    &PLUGIN.0
}
