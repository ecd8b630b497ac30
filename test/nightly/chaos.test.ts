import { randomInt } from 'node:crypto'
import { expect, it } from 'vitest'
import { findRepeated, isSameRefund, type Ledgers, splitName } from './audit/ledgers.ts'
import { ACCOUNTS } from './chaos/accounts.ts'
import { writeCommand, writeReport } from './chaos/report.ts'
import { runChaos } from './chaos/run.ts'

const STORM_MS = 30_000
const PER_S = 6

it('half a minute of killed processes, a killed database that is set back once, cut connections and a misbehaving gateway, for two accounts: nothing else acknowledged is lost, nothing doubled, nothing stuck', async () => {
  const seed = Number(process.env.CHAOS_SEED ?? (process.env.CI ? 1 : randomInt(1_000_000)))
  const command = writeCommand(seed, STORM_MS, PER_S)
  console.log(command)
  const lines = [command]
  const log = (line: string) => void lines.push(line)
  const result = await runChaos({
    seed,
    stormMs: STORM_MS,
    perS: PER_S,
    quietMs: 250_000,
    webhooks: false,
    log,
  }).catch((error: unknown) => {
    throw new Error(lines.join('\n'), { cause: error })
  })
  const told = [...lines, writeReport(result)].join('\n')
  expect(result.problems, told).toEqual([])
  expect(result.refusals, told).toEqual([])
  const { counts, ledgers } = result
  expect(counts.get('kill -9 database'), told).toBeGreaterThanOrEqual(1)
  const kills = [...counts].filter(([name]) => /^kill -9 (web|worker|all)/.test(name))
  expect(
    kills.reduce((sum, [, n]) => sum + n, 0),
    told,
  ).toBeGreaterThanOrEqual(3)
  expect(counts.get('database set back'), told).toBe(1)
  // The embedded programs include none to make a standby.
  const hasStandby = result.database.startsWith('Debian')
  expect(counts.get('database failed over') ?? 0, told).toBe(hasStandby ? 1 : 0)
  expect(counts.get('gateway: lagging ledger'), told).toBeGreaterThanOrEqual(2)
  expectSharedIds(ledgers, told)
  expectPortalRefunds(ledgers, told)
  expect(ledgers.stored.notifications.length, told).toBeGreaterThan(50)
  expect(ledgers.moved.movements.length, told).toBeGreaterThan(20)
}, 500_000)

/** Both accounts have transactions and refunds, some of them under the same ids. */
function expectSharedIds({ stored }: Ledgers, told: string): void {
  for (const all of [stored.transactions, stored.refunds]) {
    const accounts = all.map(({ id }) => splitName(id)[0])
    for (const { merchantCode } of ACCOUNTS) {
      expect(accounts.filter((one) => one === merchantCode).length, told).toBeGreaterThan(10)
    }
  }
  for (const names of [stored.payments.map(({ id }) => id), stored.refunds.map(({ key }) => key)]) {
    expect(findRepeated(names.map((name) => splitName(name)[1])).length, told).toBeGreaterThan(5)
  }
}

/** Before and after the payment was seen, some of the amount of a refund of ours, notified and not. */
function expectPortalRefunds({ acknowledged: sent, stored, moved }: Ledgers, told: string): void {
  const before = sent.portal.filter(({ isBefore }) => isBefore)
  expect(before.length, told).toBeGreaterThanOrEqual(3)
  expect(sent.portal.length - before.length, told).toBeGreaterThanOrEqual(3)
  const isEqual = (one: (typeof sent.portal)[number]) =>
    stored.refunds.some((other) => isSameRefund(one, other))
  expect(sent.portal.filter(isEqual).length, told).toBeGreaterThanOrEqual(3)
  const notified = new Set(moved.told.map(({ requestId }) => requestId))
  expect(
    sent.portal.filter(({ requestId }) => notified.has(requestId)).length,
    told,
  ).toBeGreaterThan(3)
  expect(stored.external.filter(({ state }) => state === 'matched').length, told).toBeGreaterThan(2)
}
