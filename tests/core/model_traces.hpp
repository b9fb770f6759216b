// SPDX-License-Identifier: Apache-2.0
// What training asks of an allocator: the sizes, the order and the lifetimes of one step's tensors,
// derived from the shapes of the layers. No arithmetic is done.
//
// Lifetimes are those of eager execution. A result lives as long as it is a variable or is saved
// for the backward pass; gradients of parameters live until zero_grad, which comes after the
// forward pass; workspaces live for one operator; the optimizer's state appears in the first step
// and stays.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace tenon::test {

// One allocation of `bytes`, named by the slot that it takes; 0 bytes: what the slot holds goes
// back.
struct TraceEvent {
  uint32_t slot;
  uint32_t stream;  // 0: computes; 1: copies batches to the device, which stream 0 then uses
  uint64_t bytes;
};

// Events in the order in which they happen.
class TraceRecorder {
 public:
  // Gives its slot back when it is destroyed.
  class Block {
   public:
    Block(TraceRecorder& recorder, uint64_t bytes, uint32_t stream);
    ~Block();
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    uint64_t bytes() const { return bytes_; }

   private:
    TraceRecorder& recorder_;
    uint64_t bytes_;
    uint32_t slot_;
    uint32_t stream_;
  };

  // The events since the last call.
  std::vector<TraceEvent> take_events();
  uint32_t slot_count() const { return slots_; }

 private:
  std::vector<TraceEvent> events_;
  std::vector<uint32_t> free_slots_;
  uint32_t slots_ = 0;
};

// A model with its optimizer; each step appends to the recorder's events.
class TracedModel {
 public:
  virtual ~TracedModel() = default;
  // `size`: the length of the sequences, or the number of images.
  virtual void step(uint64_t size) = 0;
};

// ResNet-18 on 224 x 224 images, momentum SGD.
std::unique_ptr<TracedModel> traced_resnet18(TraceRecorder& recorder);

// GPT-2 with 12 layers of width 768, batches of 8 sequences, attention of single operators, Adam.
std::unique_ptr<TracedModel> traced_gpt(TraceRecorder& recorder);

}  // namespace tenon::test
