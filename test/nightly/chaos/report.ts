import { countLost, type Finding } from '../audit/audit.ts'
import { unique } from '../audit/ledgers.ts'
import type { Damage } from '../audit/rules.ts'
import type { Result } from './run.ts'

const SHOWN_PROBLEMS = 8

/** Formats the auditor's table: what happened, what the ledgers hold, and what is wrong. */
export function writeReport({ counts, ledgers, problems, refusals, ...result }: Result): string {
  const { acknowledged: sent, stored, moved, fed } = ledgers
  const count = (isOf: (name: string) => boolean) =>
    [...counts].reduce((sum, [name, n]) => sum + (isOf(name) ? n : 0), 0)
  const damage = (which: Damage) => problems.filter((one) => one.damage === which).length
  const refunds = (status: string) => stored.refunds.filter((one) => one.status === status).length
  const lost = countLost(ledgers)
  const external = (state: string) => stored.external.filter((one) => one.state === state).length
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
    ['  of them made at its portal', sent.portal.length],
    ['portal refunds stored', stored.external.length],
    ['  matched', external('matched')],
    ['  part of what was refunded at first sight', external('part_of_first_sight')],
    ['  ours, from rows that were lost', external('own')],
    ['requests refused until their order system gave up', sent.refused.length],
    ['lost by the set-back: notifications', lost.notifications],
    ['lost by the set-back: refunds not stored again', lost.refunds],
    ['events published', fed?.read.length ?? 0],
    ['webhooks accepted', fed?.taken?.length ?? 'none registered'],
    ['undecidable (legitimate)', result.undecidable],
    ['at rest after the storm (s)', (result.quietAfterMs / 1_000).toFixed(1)],
    ['LOST', damage('lost')],
    ['DOUBLED', damage('doubled')],
    ['DISORDERED', damage('disordered')],
    ['STUCK', damage('stuck')],
    ['LEAKED', damage('leaked')],
    ['requests refused without a reason', refusals.length],
  ]
  const width = Math.max(...rows.map(([name]) => name.length))
  const lines = rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`)
  return [...lines, ...describeProblems(problems), ...refusals].join('\n')
}

/** Describes the first problems of each rule, so that many of one do not hide those of another. */
function describeProblems(problems: readonly Finding[]): string[] {
  const name = ({ damage, rule }: Finding) => `${damage.toUpperCase()}, against "${rule}"`
  return unique(problems.map(name)).flatMap((rule) => {
    const found = problems.filter((problem) => name(problem) === rule)
    const shown = found.slice(0, SHOWN_PROBLEMS).map(({ what }) => `${rule}: ${what}`)
    const more = found.length - shown.length
    return more > 0 ? [...shown, `… and ${more} more against this rule`] : shown
  })
}

/** The command that repeats the same run. */
export function writeCommand(seed: number, stormMs: number, perS: number): string {
  return `npm run test:chaos -- --seed ${seed} --minutes ${stormMs / 60_000} --rate ${perS}`
}
