/** Violations since the last `takeFaults`. */
const faults: string[] = []
/** Responses that are still being checked. */
const reading = new Set<Promise<void>>()

export function addFault(fault: string): void {
  faults.push(fault)
}

/** Makes `takeFaults` wait for this check. */
export function addReading(read: Promise<void>): void {
  const done = read.finally(() => reading.delete(done))
  reading.add(done)
}

/** Returns the violations found since the last call. */
export async function takeFaults(): Promise<string[]> {
  await Promise.all(reading)
  return faults.splice(0)
}
