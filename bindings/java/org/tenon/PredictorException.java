// SPDX-License-Identifier: Apache-2.0
package org.tenon;

/** What a call of libtenon_predictor failed with. */
public final class PredictorException extends RuntimeException {
  private static final long serialVersionUID = 1;

  private final int status;

  PredictorException(int status, String text) {
    super(text);
    this.status = status;
  }

  /** A TENON_ status of tenon/abi.h: 3 is INVALID_ARGUMENT, 9 FAILED_PRECONDITION. */
  public int status() {
    return status;
  }
}
