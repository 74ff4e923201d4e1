// Values that are made anew only when what they are made of has changed.

/** The last value, and what it was made of. */
export class Latest {
  #of = null;
  #value = null;

  /** `make()`, or what it made before of the same things. */
  get(of, make) {
    if (this.#of === null || of.some((one, at) => one !== this.#of[at])) {
      this.#value = make();
      this.#of = of;
    }
    return this.#value;
  }
}
