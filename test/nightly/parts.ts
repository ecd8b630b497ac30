import { writeFileSync } from 'node:fs'
import type { Reporter } from 'vitest/node'
import { z } from 'zod'

/** A file or folder of the nightly tests, or a program of its own; `failed` names its files that failed. */
export const Part = z.object({
  name: z.string(),
  ms: z.number(),
  isPassed: z.boolean(),
  failed: z.array(z.string()),
})
export type Part = z.infer<typeof Part>

const FOLDER = 'test/nightly/'

/** Writes the parts that Vitest played to a file: it runs as a process of its own. */
export const reportParts = (file: string): Reporter => ({
  onTestRunEnd(modules) {
    const parts = new Map<string, Part>()
    for (const module of modules) {
      const path = module.relativeModuleId.slice(FOLDER.length)
      const name = path.replace(/(\.test\.ts|\/.*)$/, '')
      const part = parts.get(name) ?? { name, ms: 0, isPassed: true, failed: [] }
      const { collectDuration, setupDuration, duration } = module.diagnostic()
      part.ms += collectDuration + setupDuration + duration
      if (!module.ok()) {
        part.isPassed = false
        part.failed.push(path)
      }
      parts.set(name, part)
    }
    writeFileSync(file, JSON.stringify([...parts.values()]))
  },
})

export function formatParts(parts: readonly Part[]): string {
  const width = Math.max(...parts.map(({ name }) => name.length))
  const lines = parts.map(({ name, ms, isPassed, failed }) => {
    const seconds = `${Math.round(ms / 1_000)} s`.padStart(7)
    return [name.padEnd(width), seconds, isPassed ? 'passed' : 'failed', failed.join(', ')]
  })
  return lines.map((line) => line.join('  ').trimEnd()).join('\n')
}
