/** The median and the range of some figures. */
export interface Summary {
  median: number
  min: number
  max: number
}

/** @throws Error when there is no figure */
export function summarise(figures: readonly number[]): Summary {
  return { median: median(figures), min: quantile(figures, 0), max: quantile(figures, 1) }
}

/** @throws Error when there is no figure */
export function median(figures: readonly number[]): number {
  return quantile(figures, 0.5)
}

/**
 * The figure below which this share of all figures lies, interpolated linearly.
 *
 * @param share from 0 to 1
 * @throws Error when there is no figure
 */
export function quantile(figures: readonly number[], share: number): number {
  const sorted = Float64Array.from(figures).sort()
  const place = (sorted.length - 1) * share
  const below = sorted[Math.floor(place)]
  const above = sorted[Math.ceil(place)]
  if (below === undefined || above === undefined) throw new Error('there are no figures')
  return below + (above - below) * (place - Math.floor(place))
}
