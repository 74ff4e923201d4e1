export enum Kind { Dense, Sparse }
namespace Inner {
  export function seedOf(n: number) { let s = 1; for (let i = 0; i < 50; i++) s = (s * 48271 + n) % 2147483647; return s; }
}
export default class Matrix {
  rows: Float64Array[];
  constructor(public size: number, kind: Kind = Kind.Dense) {
    this.rows = [];
    for (let r = 0; r < size; r++) {
      const row = new Float64Array(size);
      for (let c = 0; c < size; c++) row[c] = kind === Kind.Dense ? (Inner.seedOf(r * c) % 17) : 0;
      this.rows.push(row);
    }
  }
  dotProduct(other: Matrix): Matrix {
    const result = new Matrix(this.size, Kind.Sparse);
    for (let r = 0; r < this.size; r++)
      for (let c = 0; c < this.size; c++) {
        let sum = 0;
        for (let k = 0; k < this.size; k++) sum += this.rows[r]![k]! * other.rows[k]![c]!;
        result.rows[r]![c] = sum;
      }
    return result;
  }
}
export const makeIdentity = function (size: number) {
  const identity = new Matrix(size, Kind.Sparse);
  for (let i = 0; i < size; i++) identity.rows[i]![i] = 1;
  return identity;
};
export const helpers = {
  trace(m: Matrix) { let t = 0; for (let i = 0; i < m.size; i++) t += m.rows[i]![i]!; return t; },
  norm: (m: Matrix) => { let t = 0; for (const row of m.rows) for (const v of row) t += v * v; return Math.sqrt(t); },
  *cells(m: Matrix) { for (const row of m.rows) yield row[0]!; },
};
