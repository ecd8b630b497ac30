import { z } from 'zod'
import type { Guard } from '../guards/guard.ts'
import { GUARDS } from '../guards.ts'
import { judge } from './judge.ts'
import { needsOwnTests, openTests, type Tests } from './tests.ts'

/**
 * Plays rows in a copy of the project, whose folder is the first argument: for each index of the ledger that it is sent,
 * it answers with the fault, or null. Ends when its parent disconnects.
 */
const [root = ''] = process.argv.slice(2)
const Order = z.object({ index: z.number() })

/** One Vitest for all the rows that can share it. */
let shared: Tests | undefined

process.on('message', async (message) => {
  const { index } = Order.parse(message)
  const guard = GUARDS[index]
  if (guard === undefined) throw new Error(`the ledger has no row ${index}`)
  const startedAt = performance.now()
  const fault = await play(guard)
  process.send?.({ index, fault: fault ?? null, tookMs: performance.now() - startedAt })
})
process.on('disconnect', async () => {
  await shared?.close()
  process.exit(0)
})

async function openShared(): Promise<Tests> {
  shared ??= await openTests(root)
  return shared
}

async function play(guard: Guard): Promise<string | undefined> {
  const isAlone = needsOwnTests(root, guard)
  if (isAlone) {
    // Both would create the template of their databases under this process's id.
    await shared?.close()
    shared = undefined
  }
  const tests = isAlone ? await openTests(root) : await openShared()
  const outcomes = await tests.run(guard)
  if (isAlone) await tests.close()
  return judge(guard, { occurrences: 1, ...outcomes })
}
