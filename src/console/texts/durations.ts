const count = (n: number, unit: string) => `${n} ${unit}${n === 1 ? '' : 's'}`

/** Lengths of time in words. */
export const durationTexts = {
  days: (n: number) => count(n, 'day'),
  hours: (n: number) => count(n, 'hour'),
  minutes: (n: number) => count(n, 'minute'),
  moment: 'less than a minute',
} as const
