import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { SCOPES } from '../../src/access/keys.ts'
import { discrepancies, refunds, transactions } from '../../src/db/schema.ts'
import { EXTERNAL_STATES } from '../../src/refunds/external-view.ts'

type Row = { object: string; state: string; exit: string; who: string; call: string }

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

describe('the table of states', () => {
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

  it('names scopes that exist', () => {
    const named = new Set(rows.map(({ who }) => who).filter((who) => who !== 'service'))
    // Approval has its own scope.
    named.delete('refunds:approve')
    expect([...named].filter((who) => !SCOPES.some((scope) => scope === who))).toEqual([])
  })
})
