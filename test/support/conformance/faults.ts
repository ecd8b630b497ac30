/** What did not conform since somebody asked. */
const faults: string[] = []
/** Answers that are still being read. */
const reading = new Set<Promise<void>>()

export function addFault(fault: string): void {
  faults.push(fault)
}

/** Whoever asks for the faults waits until this one was read. */
export function addReading(read: Promise<void>): void {
  const done = read.finally(() => reading.delete(done))
  reading.add(done)
}

/** The answers that did not conform, each of them told once. */
export async function takeFaults(): Promise<string[]> {
  await Promise.all(reading)
  return faults.splice(0)
}
