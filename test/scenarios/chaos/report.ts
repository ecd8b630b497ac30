import type { Problem } from './audit.ts'
import type { Damage } from './rules.ts'
import type { Result } from './run.ts'

const SHOWN_PROBLEMS = 20

/** Formats the auditor's table: what happened, what the ledgers hold, and what is wrong. */
export function writeReport({ counts, ledgers, problems, refusals, ...result }: Result): string {
  const { sent, stored, moved, feed } = ledgers
  const count = (isOf: (name: string) => boolean) =>
    [...counts].reduce((sum, [name, n]) => sum + (isOf(name) ? n : 0), 0)
  const damage = (which: Damage) => problems.filter((one) => one.damage === which).length
  const refunds = (status: string) => stored.refunds.filter((one) => one.status === status).length
  const rows: [string, string | number][] = [
    ['database', result.database],
    ['kill -9 of processes', count((name) => /^kill -9 (web|worker|all)/.test(name))],
    ['kill -9 of the database', count((name) => name === 'kill -9 database')],
    ...[...counts]
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([name, n]): [string, number] => [`  ${name}`, n]),
    ['notifications acknowledged', sent.notifications.length],
    ['  different ones stored', stored.notifications.length],
    ['transactions stored', stored.transactions.length],
    ['requests to refund answered 202', sent.refunds.length],
    ['  different refunds stored', stored.refunds.length],
    ['  succeeded', refunds('succeeded')],
    ['  failed', refunds('failed')],
    ['  in needs_review', refunds('needs_review')],
    ['refunds moved at the gateway', moved.movements.length],
    ['events published', feed.read.length],
    ['webhooks accepted', feed.taken?.length ?? 'none registered'],
    ['undecidable (legitimate)', result.undecidable],
    ['at rest after the storm (s)', (result.quietAfterMs / 1_000).toFixed(1)],
    ['LOST', damage('lost')],
    ['DOUBLED', damage('doubled')],
    ['DISORDERED', damage('disordered')],
    ['STUCK', damage('stuck')],
    ['requests refused without a reason', refusals.length],
  ]
  const width = Math.max(...rows.map(([name]) => name.length))
  const lines = rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`)
  return [...lines, ...describeProblems(problems), ...refusals].join('\n')
}

function describeProblems(problems: readonly Problem[]): string[] {
  const shown = problems
    .slice(0, SHOWN_PROBLEMS)
    .map(({ damage, rule, what }) => `${damage.toUpperCase()}, against "${rule}": ${what}`)
  const more = problems.length - shown.length
  return more > 0 ? [...shown, `… and ${more} more`] : shown
}

/** The command that repeats the same run. */
export function writeCommand(seed: number, stormMs: number, perS: number): string {
  return `npm run test:chaos -- --seed ${seed} --minutes ${stormMs / 60_000} --rate ${perS}`
}
