import { expect } from 'vitest'
import { audit, type Violation } from './auditor.ts'
import type { Books, Phase } from './books.ts'
import { listMade, readBooks } from './read-books.ts'
import { note, showsNow, type World } from './world.ts'

/**
 * What must hold after every step, whatever happened.
 * @param rowsChanged false when the account's rows are what they were at the last audit
 */
export async function checkBooks(world: World, rowsChanged: boolean): Promise<void> {
  for (const payment of world.payments) {
    const shown = Math.max(world.highest.get(payment.id) ?? 0, showsNow(world, payment))
    world.highest.set(payment.id, shown)
  }
  const made = listMade(world)
  const outside = JSON.stringify([made, [...world.wire.sends], [...world.highest]])
  if (!rowsChanged && outside === world.audited && world.changedByOther.length === 0) return
  world.audited = outside
  const books = await checkIn(world, 'open')
  for (const { id, inferred } of books.shown) {
    if (inferred && !world.inferred.has(id)) note(world, 'inferred')
    if (inferred) world.inferred.add(id)
  }
  const pausedId = world.pause?.refundId
  const failed = books.shown.find(({ id }) => id === pausedId)?.status === 'failed'
  expect(failed && !world.restored, 'failed, and its bytes may still leave').toBe(false)
}

/** Audits the account in a phase of its run. */
export async function checkIn(world: World, phase: Phase): Promise<Books> {
  const books = await readBooks(world, phase)
  const violations = audit(books).filter((one) => !isExcused(world, one))
  const { payments, shown, external, made } = books
  const facts = { phase, payments, shown, external, made, failures: books.failures }
  const seen = violations.length > 0 ? JSON.stringify(facts, undefined, 1) : ''
  expect(violations, `${world.account.merchantCode} ${seen}`).toEqual([])
  return books
}

function isExcused({ overdrawn }: World, { rule, id }: Violation): boolean {
  return rule === 'too_much_moved' && overdrawn.has(id)
}
