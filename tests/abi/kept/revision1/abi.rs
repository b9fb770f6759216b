// SPDX-License-Identifier: Apache-2.0
// tenon/abi.h of revision 1 in Rust, written by hand: as much of it as a device needs. That this
// fits is what the kept binary proves; a mirror that is wrong anywhere crashes at once.
#![allow(dead_code)]

use core::ffi::{c_char, c_void};

pub type Status = i32;
pub const OK: Status = 0;
pub const NOT_FOUND: Status = 5;
pub const OUT_OF_MEMORY: Status = 8;
pub const UNSUPPORTED: Status = 12;

pub const ABI_EPOCH: u32 = 1;
pub const ABI_REVISION: u32 = 1;

#[repr(C)]
pub struct Err {
    _opaque: [u8; 0],
}
#[repr(C)]
pub struct DeviceHandle {
    _opaque: [u8; 0],
}
#[repr(C)]
pub struct StreamHandle {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct DeviceInfo {
    pub struct_size: u32,
    pub flags: u32,
    pub name: [u8; 64],
    pub arch: [u8; 32],
    pub bus_id: [u8; 32],
    pub memory_bytes: u64,
    pub dl_device_type: i32,
    pub reserved: i32,
    pub reserved_words: [u64; 8],
}

#[repr(C)]
pub struct AllocRequest {
    pub struct_size: u32,
    pub kind: u32,
    pub must_understand: u64,
    pub bytes: u64,
    pub align: u64,
    pub stream: *mut StreamHandle,
}

#[repr(C)]
pub struct CopyRequest {
    pub struct_size: u32,
    pub direction: i32,
    pub must_understand: u64,
    pub dst: *mut c_void,
    pub src: *const c_void,
    pub bytes: u64,
    pub dst_offset: u64,
    pub src_offset: u64,
    pub stream: *mut StreamHandle,
}

#[repr(C)]
pub struct DeviceApi {
    pub struct_size: u32,
    pub revision: u32,
    pub features: u64,
    pub kind: *const c_char,
    pub enumerate: unsafe extern "C" fn(*mut DeviceInfo, u32, *mut u32, *mut Err) -> Status,
    pub open: unsafe extern "C" fn(u32, *mut *mut DeviceHandle, *mut Err) -> Status,
    pub close: unsafe extern "C" fn(*mut DeviceHandle),
    pub alloc: unsafe extern "C" fn(*mut DeviceHandle, *const AllocRequest, *mut *mut c_void, *mut Err) -> Status,
    pub free: unsafe extern "C" fn(*mut DeviceHandle, *mut c_void, u64, *mut StreamHandle),
    pub copy: unsafe extern "C" fn(*mut DeviceHandle, *const CopyRequest, *mut Err) -> Status,
    pub fill: unsafe extern "C" fn(
        *mut DeviceHandle,
        *mut c_void,
        u64,
        u64,
        *const c_void,
        u32,
        *mut StreamHandle,
        *mut Err,
    ) -> Status,
    pub sync: unsafe extern "C" fn(*mut DeviceHandle, *mut StreamHandle, *mut Err) -> Status,
    pub async_group: *const c_void,
    pub pool: *const c_void,
    pub graph: *const c_void,
    pub profile: *const c_void,
    pub collective: *const c_void,
    pub ipc: *const c_void,
    pub quiesce: *const QuiesceApi,
    pub compile: *const c_void,
}

#[repr(C)]
pub struct QuiesceApi {
    pub struct_size: u32,
    pub reserved: u32,
    pub quiesce: unsafe extern "C" fn(u64, *mut Err) -> Status,
}

#[repr(C)]
pub struct Plugin {
    pub struct_size: u32,
    pub revision: u32,
    pub features: u64,
    pub name: *const c_char,
    pub version: *const c_char,
    pub vendor: *const c_char,
    pub device: *const DeviceApi,
    pub ops: *const c_void,
    pub kernels: *const c_void,
    pub nops: u32,
    pub op_size: u32,
    pub nkernels: u32,
    pub kernel_size: u32,
    pub start: Option<unsafe extern "C" fn(*const Host, *mut Err) -> Status>,
    pub stop: Option<unsafe extern "C" fn(*mut Err) -> Status>,
}

// The first slots; what lies behind them is not used here.
#[repr(C)]
pub struct Host {
    pub struct_size: u32,
    pub revision: u32,
    pub features: u64,
    pub fail: unsafe extern "C" fn(*mut Err, Status, i64, *const u8, u64),
    pub err_context: unsafe extern "C" fn(*mut Err, *const u8, u64),
    pub err_create: unsafe extern "C" fn() -> *mut Err,
    pub err_destroy: unsafe extern "C" fn(*mut Err),
    pub err_code: unsafe extern "C" fn(*const Err) -> Status,
    pub err_text: unsafe extern "C" fn(*const Err) -> *const c_char,
    pub err_clear: unsafe extern "C" fn(*mut Err),
    pub log: unsafe extern "C" fn(i32, *const u8, u64),
}

#[repr(C, align(4))]
pub struct Note {
    pub name_size: u32,
    pub desc_size: u32,
    pub note_type: u32,
    pub owner: [u8; 8],
    pub epoch_min: u32,
    pub epoch_max: u32,
    pub sanitizer: u32,
    pub reserved: u32,
    pub name: [u8; 32],
    pub version: [u8; 32],
    pub json: [u8; 432],
}

/// `text`, and zeros up to the size of the field.
pub const fn padded<const N: usize>(text: &[u8]) -> [u8; N] {
    let mut field = [0; N];
    let mut i = 0;
    while i < text.len() {
        field[i] = text[i];
        i += 1;
    }
    field
}
