// Tells whether a change between two recordings is larger than the noise of sampling. It uses the same likelihood-ratio
// test (G-test) with Yates' correction as `report --diff` and `flamegraph --diff`.

/** A change is significant if it is larger than this many standard deviations, as on the command line. */
export const SIGNIFICANT = 3;

/**
 * True if the share of samples ({part, whole}) differs between two profiles by more than chance. False if one of them
 * has no samples, because then nothing is known.
 */
export function isSignificant(before, after) {
  return deviations(before, after) > SIGNIFICANT;
}

/** How many standard deviations the shares {part, whole} of two profiles are apart; 0 if nothing is known. */
export function deviations(before, after) {
  const share = (before.part + after.part) / (before.whole + after.whole);
  if (!(before.whole > 0 && after.whole > 0 && share > 0 && share < 1)) return 0;
  // If nothing had changed, both sides would have about the same share, that of all samples together. `expected` is the
  // earlier side's number with this share. `apart` is how far the actual number is from it, less the 0.5 of Yates'
  // correction.
  const expected = before.whole * share;
  const difference = before.part - expected;
  const apart = Math.sign(difference) * Math.max(Math.abs(difference) - 0.5, 0);
  // The G-test adds up terms for four numbers of samples: those in the part and those outside of it, on each side. What
  // the earlier side has too much in the part, it has too little outside of it, and the later side the other way round.
  const inside = likelihoodTerm(expected, apart) + likelihoodTerm(after.whole * share, -apart);
  const outside = likelihoodTerm(before.whole * (1 - share), -apart) + likelihoodTerm(after.whole * (1 - share), apart);
  return Math.sqrt(Math.max(2 * (inside + outside), 0));
}

/** One term of the G-test, for a number of samples that is larger than expected by `apart`. */
function likelihoodTerm(expected, apart) {
  const observed = expected + apart;
  return observed > 0 ? observed * Math.log(observed / expected) : 0;
}
