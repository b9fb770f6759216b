/* SPDX-License-Identifier: Apache-2.0 */
/* lstm_recurrence and the gradients of its inputs. A group runs all steps for ROWS items of the batch, so that nothing
 * waits for other groups between steps; what passes from step to step stays in local memory. Every step reads the whole
 * weight, ROWS items share each element that is read. `features` is at most CAPACITY; GROUP is the size of a group. */
#if GROUP == 1
#define BARRIER()
#else
#define BARRIER() tk_barrier()
#endif
#define QUARTERS (4 * features)
#define FOR_LOCAL(i, count) for (tk_i64 i = tk_local_id(0); i < (count); i += GROUP)
/* The items of this group's turn: the last turn may have fewer. */
#define FOR_ITEMS(first) \
  for (tk_i64 first = tk_group_id(0) * ROWS; first < batch; first += tk_group_count(0) * ROWS)

#if defined( \
    PACK) /* [4 * features, features] becomes [features, 4 * features] in the dtype of arithmetic */
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, weight), TK_BUFFER(T, packed), tk_i64 features) {
  TK_BIND(STORAGE, weight);
  TK_BIND(T, packed);
  FOR_EACH(e, QUARTERS * features)
  packed[e] = (T)LOAD(weight[e % QUARTERS * features + e / QUARTERS]);
}

#elif defined(FORWARD)
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, x), TK_BUFFER(T, packed), TK_BUFFER(STORAGE, h),
                      TK_BUFFER(STORAGE, c), TK_BUFFER(STORAGE, out), TK_BUFFER(STORAGE, cells),
                      TK_BUFFER(STORAGE, gates), tk_i64 steps, tk_i64 batch, tk_i64 features) {
  TK_LOCAL T hidden[ROWS][CAPACITY];
  TK_LOCAL T cell[ROWS][CAPACITY];
  TK_LOCAL T active[ROWS][4 * CAPACITY];
  TK_BIND(STORAGE, x);
  TK_BIND(T, packed);
  TK_BIND(STORAGE, h);
  TK_BIND(STORAGE, c);
  TK_BIND(STORAGE, out);
  TK_BIND(STORAGE, cells);
  TK_BIND(STORAGE, gates);
  FOR_ITEMS(first) {
    const int rows = batch - first < ROWS ? (int)(batch - first) : ROWS;
    for (int r = 0; r < rows; ++r) FOR_LOCAL(j, features) {
        hidden[r][j] = (T)LOAD(h[(first + r) * features + j]);
        cell[r][j] = (T)LOAD(c[(first + r) * features + j]);
      }
    BARRIER();
    for (tk_i64 t = 0; t < steps; ++t) {
      const tk_i64 step = t * batch + first;
      FOR_LOCAL(q, QUARTERS) {
        T sum[ROWS];
        for (int r = 0; r < ROWS; ++r)
          sum[r] = r < rows ? (T)LOAD(x[(step + r) * QUARTERS + q]) : (T)0;
        for (tk_i64 k = 0; k < features; ++k) {
          const T weight = packed[k * QUARTERS + q];
          for (int r = 0; r < ROWS; ++r) sum[r] += hidden[r][k] * weight;
        }
        const int is_cell = q / features == 2;
        for (int r = 0; r < rows; ++r) {
          const T gate = is_cell ? k_tanh(sum[r]) : k_sigmoid(sum[r]);
          active[r][q] = gate;
          gates[(step + r) * QUARTERS + q] = STORE((COMPUTE)gate);
        }
      }
      BARRIER();
      for (int r = 0; r < rows; ++r) FOR_LOCAL(j, features) {
          const T after =
              active[r][features + j] * cell[r][j] + active[r][j] * active[r][2 * features + j];
          const T shown = active[r][3 * features + j] * k_tanh(after);
          cell[r][j] = after;
          hidden[r][j] = shown;
          cells[(step + r) * features + j] = STORE((COMPUTE)after);
          out[(step + r) * features + j] = STORE((COMPUTE)shown);
        }
      BARRIER();
    }
  }
}

#else /* BACKWARD */
TK_KERNEL void KERNEL(TK_BUFFER(STORAGE, grad_out), TK_BUFFER(STORAGE, grad_cells),
                      TK_BUFFER(STORAGE, grad_gates), TK_BUFFER(STORAGE, weight),
                      TK_BUFFER(STORAGE, c), TK_BUFFER(STORAGE, cells), TK_BUFFER(STORAGE, gates),
                      TK_BUFFER(STORAGE, dx), TK_BUFFER(STORAGE, dh), TK_BUFFER(STORAGE, dc),
                      tk_i64 steps, tk_i64 batch, tk_i64 features) {
  TK_LOCAL T dhidden[ROWS][CAPACITY];
  TK_LOCAL T dcell[ROWS][CAPACITY];
  TK_LOCAL T dsum[ROWS][4 * CAPACITY];
  TK_LOCAL T partial[ROWS][GROUP < CAPACITY ? CAPACITY : GROUP];
  TK_BIND(STORAGE, grad_out);
  TK_BIND(STORAGE, grad_cells);
  TK_BIND(STORAGE, grad_gates);
  TK_BIND(STORAGE, weight);
  TK_BIND(STORAGE, c);
  TK_BIND(STORAGE, cells);
  TK_BIND(STORAGE, gates);
  TK_BIND(STORAGE, dx);
  TK_BIND(STORAGE, dh);
  TK_BIND(STORAGE, dc);
  /* The product with the weight divides its sums among the items that have no column of their own. */
  const tk_i64 parts = GROUP < features ? 1 : GROUP / features;
  FOR_ITEMS(first) {
    const int rows = batch - first < ROWS ? (int)(batch - first) : ROWS;
    for (int r = 0; r < ROWS; ++r) {
      FOR_LOCAL(j, features) dhidden[r][j] = dcell[r][j] = 0;
      FOR_LOCAL(q, QUARTERS) dsum[r][q] = 0;
    }
    BARRIER();
    for (tk_i64 t = steps - 1; t >= 0; --t) {
      const tk_i64 step = t * batch + first;
      for (int r = 0; r < rows; ++r) FOR_LOCAL(j, features) {
          const tk_i64 item = (step + r) * features + j, gate = (step + r) * QUARTERS + j;
          const T input = (T)LOAD(gates[gate]), forget = (T)LOAD(gates[gate + features]);
          const T written = (T)LOAD(gates[gate + 2 * features]);
          const T output = (T)LOAD(gates[gate + 3 * features]);
          const T before = t > 0 ? (T)LOAD(cells[item - batch * features])
                                 : (T)LOAD(c[(first + r) * features + j]);
          const T shown = k_tanh((T)LOAD(cells[item]));
          const T from_out = dhidden[r][j] + (T)LOAD(grad_out[item]);
          const T from_cell =
              dcell[r][j] + (T)LOAD(grad_cells[item]) + from_out * output * (1 - shown * shown);
          T d[4];
          d[0] = (from_cell * written + (T)LOAD(grad_gates[gate])) * input * (1 - input);
          d[1] =
              (from_cell * before + (T)LOAD(grad_gates[gate + features])) * forget * (1 - forget);
          d[2] = (from_cell * input + (T)LOAD(grad_gates[gate + 2 * features])) *
                 (1 - written * written);
          d[3] =
              (from_out * shown + (T)LOAD(grad_gates[gate + 3 * features])) * output * (1 - output);
          for (int quarter = 0; quarter < 4; ++quarter) {
            dsum[r][quarter * features + j] = d[quarter];
            dx[gate + quarter * features] = STORE((COMPUTE)d[quarter]);
          }
          dcell[r][j] = from_cell * forget;
        }
      BARRIER();
      FOR_LOCAL(slot, parts * features) {
        const tk_i64 part = slot / features, column = slot % features;
        const tk_i64 end = (part + 1) * QUARTERS / parts;
        T sum[ROWS];
        for (int r = 0; r < ROWS; ++r) sum[r] = 0;
        for (tk_i64 q = part * QUARTERS / parts; q < end; ++q) {
          const T element = (T)LOAD(weight[q * features + column]);
          for (int r = 0; r < ROWS; ++r) sum[r] += dsum[r][q] * element;
        }
        for (int r = 0; r < ROWS; ++r) partial[r][slot] = sum[r];
      }
      BARRIER();
      for (int r = 0; r < rows; ++r) FOR_LOCAL(j, features) {
          T sum = partial[r][j];
          for (tk_i64 part = 1; part < parts; ++part) sum += partial[r][part * features + j];
          dhidden[r][j] = sum;
        }
      BARRIER();
    }
    for (int r = 0; r < rows; ++r) FOR_LOCAL(j, features) {
        dh[(first + r) * features + j] = STORE((COMPUTE)dhidden[r][j]);
        dc[(first + r) * features + j] = STORE((COMPUTE)dcell[r][j]);
      }
  }
}
#endif
