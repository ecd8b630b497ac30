import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import {
  createVitest,
  escapeTestName,
  type TestCase,
  type TestModule,
  type Vitest,
} from 'vitest/node'
import type { Guard } from '../guards/guard.ts'
import type { Outcome } from './judge.ts'
import { mutate } from './tree.ts'

/** Vitest over a copy of the project. */
export type Tests = {
  /** Runs the claim and the control of a row, nothing else, with its mutation in place. */
  run(guard: Guard): Promise<{ claim: Outcome; control: Outcome }>
  close(): Promise<void>
}

/** Starts Vitest, which sets up its database and its programs at the first run. */
export async function openTests(root: string): Promise<Tests> {
  const vitest = await createVitest('test', {
    root,
    config: join(root, 'test/vitest.config.ts'),
    watch: false,
    maxWorkers: 1,
    // What the tests print would hide the results.
    reporters: [{}],
  })
  await vitest.standalone()
  return {
    async run(guard) {
      const restore = mutate(root, [guard])
      vitest.invalidateFile(join(root, guard.file))
      try {
        return await runBoth(vitest, root, guard)
      } finally {
        restore()
        vitest.invalidateFile(join(root, guard.file))
      }
    },
    close: () => vitest.close(),
  }
}

async function runBoth(vitest: Vitest, root: string, { test, claim, control }: Guard) {
  const path = join(root, test)
  const names = [claim, control].map((name) => escapeTestName(name, false))
  const specification = vitest
    .getRootProject()
    .createSpecification(path, { testNamePattern: new RegExp(`^(${names.join('|')})$`) })
  // Every run forks a process, which loads all modules anew; those that did not change are transformed already.
  const { testModules } = await vitest.runTestSpecifications([specification])
  const played = testModules.find(({ moduleId }) => moduleId === path)
  return { claim: readOutcome(played, claim), control: readOutcome(played, control) }
}

/**
 * Tells whether a row needs a Vitest of its own, because the first run prepares what it mutates: migrations run once, and
 * the programs are built once for the tests that start them as processes.
 */
export function needsOwnTests(root: string, { file, test }: Guard): boolean {
  return file.startsWith('migrations/') || usesPrograms(join(root, test), new Set())
}

const IMPORT = /\bfrom '(\.[^']+)'/g

/** Whether a file below `test`, or one that it imports, starts one of the programs that are built once. */
function usesPrograms(path: string, seen: Set<string>): boolean {
  if (seen.has(path)) return false
  seen.add(path)
  const text = readFileSync(path, 'utf8')
  if (text.includes("inject('programs')")) return true
  const imported = [...text.matchAll(IMPORT)].map(([, to = '']) => join(dirname(path), to))
  return imported.some((one) => one.includes('/test/') && usesPrograms(one, seen))
}

function readOutcome(module: TestModule | undefined, name: string): Outcome {
  const found = [...(module?.children.allTests() ?? [])].filter((one) => nameOf(one) === name)
  const results = found.map((one) => one.result()).filter(({ state }) => state !== 'skipped')
  const failed = results.find(({ state }) => state === 'failed')
  const [error] = failed?.errors ?? []
  if (error) {
    const [message = ''] = error.message.split('\n')
    return { state: 'failed', error: error.name ?? 'Error', message }
  }
  if (results.length > 0 && results.every(({ state }) => state === 'passed')) {
    return { state: 'passed' }
  }
  const [reason] = module?.errors() ?? []
  return { state: 'missing', ...(reason && { reason: reason.message.split('\n')[0] ?? '' }) }
}

/** The name of a test behind those of its `describe` blocks. */
function nameOf(test: TestCase): string {
  const { parent } = test
  const names = [test.name]
  for (let one = parent; one.type === 'suite'; one = one.parent) names.unshift(one.name)
  return names.join(' ')
}
