import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { readDocument } from '../../ops/read-document.ts'
import { EXITS, type Exit } from '../../ops/reference/states.ts'
import { discrepancies, refunds, transactions } from '../../src/db/schema.ts'
import { EXTERNAL_STATES } from '../../src/refunds/external-view.ts'
import { MOVES } from '../../src/refunds/lifecycle.ts'

/** Every state that the code knows, by the object that has it. */
const STATES: Record<string, readonly string[]> = {
  refund: refunds.status.enumValues,
  'external refund': EXTERNAL_STATES,
  transaction: transactions.state.enumValues,
  // Its state is whether this column is set.
  discrepancy: discrepancies.resolvedAt.notNull ? [] : ['open', 'resolved'],
}

/** The statuses that the exits of a refund's status lead to, as the table names them. */
function listTold(rows: readonly Exit[], state: string): string[] {
  const exits = rows.filter((row) => row.object === 'refund' && row.states.includes(state))
  const named = exits.flatMap(({ exit }) => [...exit.matchAll(/`(\w+)`/g)].map(([, to]) => to))
  return [
    ...new Set(refunds.status.enumValues.filter((to) => named.includes(to) && to !== state)),
  ].sort()
}

/** States without an exit that a person can take with a call. */
function findDeadEnds(rows: readonly Exit[], states = STATES): string[] {
  return Object.entries(states).flatMap(([object, all]) =>
    all
      .filter(
        (state) =>
          !rows.some((row) => row.object === object && row.states.includes(state) && row.call),
      )
      .map((state) => `${object} ${state}`),
  )
}

const Document = z.object({
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.object({ security: z.array(z.record(z.string(), z.array(z.string()))).optional() }),
    ),
  ),
})

/** Whatever the parameters of a path are called. */
const withoutNames = (path: string) => path.replaceAll(/\{\w+\}/g, '{}')

/** What is wrong with the calls of the table: routes that the service does not have, or that need another scope. */
function findWrongCalls(rows: readonly Exit[], { paths }: z.infer<typeof Document>): string[] {
  const scopes = new Map(
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { security = [] }]): [string, string] => [
        `${method.toUpperCase()} ${withoutNames(path)}`,
        security.flatMap((one) => one.ApiKey ?? []).join(),
      ]),
    ),
  )
  return rows.flatMap(({ call, who }) => {
    if (call === undefined) return []
    const scope = scopes.get(withoutNames(call))
    if (scope === undefined) return [`there is no ${call}`]
    return scope === who ? [] : [`${call} needs ${scope}, not ${who}`]
  })
}

describe('the table of states', () => {
  let document: z.infer<typeof Document>
  beforeAll(async () => {
    document = Document.parse(JSON.parse(await readDocument()))
  })
  const rows = EXITS

  it('has an exit that a person can take for every state in the code', () => {
    expect(rows.length).toBeGreaterThan(30)
    expect(findDeadEnds(rows)).toEqual([])
  })

  it('reveals a state that nobody can leave', () => {
    const without = rows.filter(({ states }) => !states.includes('returned'))
    expect(findDeadEnds(without)).toEqual(['refund returned'])
    expect(findDeadEnds(rows, { refund: ['new_state'] })).toEqual(['refund new_state'])
    const byItself = rows.filter(({ states, call }) => !states.includes('accepted') || !call)
    expect(findDeadEnds(byItself)).toEqual(['refund accepted'])
  })

  it('says in each row what leaves the state, and who may', () => {
    for (const { exit, who, call } of rows) {
      expect(exit).not.toBe('')
      if (call === undefined) expect(who).toBe('service')
      else expect(call).toMatch(/^(POST|DELETE) \/v1\/[\w{}/-]+$/)
    }
  })

  it('tells of a refund exactly what the rules admit', () => {
    const told = refunds.status.enumValues.map((state) => [state, listTold(rows, state)])
    const admitted = refunds.status.enumValues.map((state) => {
      const moves = Object.values(MOVES).filter(({ from }) => from.some((one) => one === state))
      return [state, [...new Set(moves.map(({ to }) => to))].filter((to) => to !== state).sort()]
    })
    expect(told).toEqual(admitted)
  })

  it('names only routes that the service has, with the scope that they need', () => {
    expect(findWrongCalls(rows, document)).toEqual([])
  })

  it('reveals a route that does not exist, another method, and another scope', () => {
    const [row] = rows.filter(({ call }) => call === 'POST /v1/refunds/{id}/approval')
    if (!row) throw new Error('the table has no approval')
    const find = (more: Partial<Exit>) => findWrongCalls([{ ...row, ...more }], document)
    const misspelt = 'POST /v1/refunds/{id}/aproval'
    expect(find({ call: misspelt })).toEqual([`there is no ${misspelt}`])
    const deleted = 'DELETE /v1/refunds/{id}/approval'
    expect(find({ call: deleted })).toEqual([`there is no ${deleted}`])
    expect(find({ who: 'refunds:write' })).toEqual([
      `${row.call} needs refunds:approve, not refunds:write`,
    ])
  })
})
