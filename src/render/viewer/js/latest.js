// Caches a value until its inputs change.

/** The last value, and the inputs it was made from. */
export class Latest {
  #of = null;
  #value = null;

  /** Returns the cached value if all elements of `of` are the same as last time; otherwise calls `make()`. */
  get(of, make) {
    if (this.#of === null || of.some((one, at) => one !== this.#of[at])) {
      this.#value = make();
      this.#of = of;
    }
    return this.#value;
  }
}
