/** Days as people enter them, `2026-11-22`, both included; they are days of UTC. */
export type Days = { from?: string | undefined; to?: string | undefined }

/** The time range of days, as ISO 8601: from the beginning of the first, and before the end of the last. */
export function toRange({ from, to }: Days): { from?: string; to?: string } {
  return {
    ...(from === undefined ? {} : { from: `${from}T00:00:00.000Z` }),
    ...(to === undefined ? {} : { to: addDay(to) }),
  }
}

function addDay(day: string): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + 86_400_000).toISOString()
}
