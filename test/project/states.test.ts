import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createApp } from '../../src/app.ts'
import { discrepancies, refunds, transactions } from '../../src/db/schema.ts'
import { EXTERNAL_STATES } from '../../src/refunds/external-view.ts'
import { MOVES } from '../../src/refunds/lifecycle.ts'
import { useRig } from '../support/use-started.ts'

type Row = {
  object: string
  state: string
  states: string[]
  exit: string
  who: string
  call: string
}

/** Reads the table behind the mark in the page: one row for each exit. */
function readTable(): Row[] {
  const [, after = ''] = readFileSync('docs/refunds.md', 'utf8').split('<!-- states -->\n')
  const table = after.trimStart().split('\n\n')[0] ?? ''
  return table
    .split('\n')
    .slice(2)
    .map((line) => {
      const [object = '', state = '', exit = '', who = '', call = ''] = line
        .split('|')
        .slice(1)
        .map((cell) => cell.trim())
      return {
        object,
        state: /`(\w+)`/.exec(state)?.[1] ?? '',
        states: state.replace(/, shown as.*/, '').match(/\w+/g) ?? [],
        exit,
        who: who.replaceAll('`', ''),
        call: call.replaceAll('`', ''),
      }
    })
}

/** Every state that the code knows, by the object that has it. */
const STATES: Record<string, readonly string[]> = {
  refund: refunds.status.enumValues,
  'external refund': EXTERNAL_STATES,
  transaction: transactions.state.enumValues,
  // Its state is whether this column is set.
  discrepancy: discrepancies.resolvedAt.notNull ? [] : ['open', 'resolved'],
}

/** The statuses that the exits of a refund's status lead to, as the table names them. */
function listTold(rows: readonly Row[], state: string): string[] {
  const exits = rows.filter((row) => row.object === 'refund' && row.states.includes(state))
  const named = exits.flatMap(({ exit }) => [...exit.matchAll(/`(\w+)`/g)].map(([, to]) => to))
  return [
    ...new Set(refunds.status.enumValues.filter((to) => named.includes(to) && to !== state)),
  ].sort()
}

/** States without an exit that a person can take with a call. */
function findDeadEnds(rows: readonly Row[], states = STATES): string[] {
  return Object.entries(states).flatMap(([object, all]) =>
    all
      .filter(
        (state) => !rows.some((row) => row.object === object && row.state === state && row.call),
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
function findWrongCalls(rows: readonly Row[], { paths }: z.infer<typeof Document>): string[] {
  const scopes = new Map(
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { security = [] }]): [string, string] => [
        `${method.toUpperCase()} ${withoutNames(path)}`,
        security.flatMap((one) => one.ApiKey ?? []).join(),
      ]),
    ),
  )
  return rows
    .filter(({ call }) => call !== '')
    .flatMap(({ call, who }) => {
      const scope = scopes.get(withoutNames(call))
      if (scope === undefined) return [`there is no ${call}`]
      return scope === who ? [] : [`${call} needs ${scope}, not ${who}`]
    })
}

describe('the table of states', () => {
  const rig = useRig({ settings: { ROLE: 'web' } })
  let document: z.infer<typeof Document>
  beforeAll(async () => {
    const response = await createApp(rig.service.ctx).request(
      '/openapi.json',
      {},
      { incoming: { socket: {}, headers: {} } },
    )
    document = Document.parse(await response.json())
  })
  const rows = readTable()

  it('has an exit that a person can take for every state in the code', () => {
    expect(rows.length).toBeGreaterThan(30)
    expect(findDeadEnds(rows)).toEqual([])
  })

  it('reveals a state that nobody can leave', () => {
    const without = rows.filter(({ state }) => state !== 'returned')
    expect(findDeadEnds(without)).toEqual(['refund returned'])
    expect(findDeadEnds(rows, { refund: ['new_state'] })).toEqual(['refund new_state'])
    const byItself = rows.map((row) => (row.state === 'accepted' ? { ...row, call: '' } : row))
    expect(findDeadEnds(byItself)).toEqual(['refund accepted'])
  })

  it('says in each row what leaves the state, and who may', () => {
    for (const { exit, who, call, state } of rows) {
      expect(`${state}: ${exit}`).toMatch(/: \S/)
      if (call === '') expect(who).toBe('service')
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
    const find = (more: Partial<Row>) => findWrongCalls([{ ...row, ...more }], document)
    const misspelt = 'POST /v1/refunds/{id}/aproval'
    expect(find({ call: misspelt })).toEqual([`there is no ${misspelt}`])
    const deleted = 'DELETE /v1/refunds/{id}/approval'
    expect(find({ call: deleted })).toEqual([`there is no ${deleted}`])
    expect(find({ who: 'refunds:write' })).toEqual([
      `${row.call} needs refunds:approve, not refunds:write`,
    ])
  })
})
