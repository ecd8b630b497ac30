import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import type { DiscrepancyRow } from '../discrepancies/types.ts'
import { DomainError } from '../errors.ts'
import { changeDiscrepancy } from './change-discrepancy.ts'

/** Every event of a discrepancy carries its notes. */
const MAX_NOTES = 100

/**
 * Adds a note to a discrepancy, whether it is resolved or not.
 * @throws DomainError `invalid_request` when it has too many
 */
export async function addNote(
  ctx: Pick<Context, 'sql' | 'log'>,
  access: Access,
  found: DiscrepancyRow,
  text: string,
): Promise<DiscrepancyRow> {
  const operation = 'POST /v1/discrepancies/{id}/note'
  return await changeDiscrepancy(
    ctx,
    access,
    found,
    operation,
    async (tx, { merchantCode, id, notes }) => {
      if (notes.length >= MAX_NOTES) {
        const message = `a discrepancy has at most ${MAX_NOTES} notes`
        throw new DomainError('invalid_request', `text: ${message}`, {
          errors: [{ path: 'text', message }],
        })
      }
      await tx`
        update discrepancies set notes = notes || jsonb_build_object('at',
          to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'by', ${access.name}::text,
          'text', ${text}::text)
        where merchant_code = ${merchantCode} and id = ${id}`
      const change = { field: 'discrepancy_note' as const, before: null, after: text }
      return { ...change, verb: 'noted', reason: text }
    },
  )
}

/**
 * Assigns an open discrepancy to a person, or to nobody.
 * @throws DomainError `discrepancy_resolved`
 */
export async function assignDiscrepancy(
  ctx: Pick<Context, 'sql' | 'log'>,
  access: Access,
  found: DiscrepancyRow,
  name: string | null,
): Promise<DiscrepancyRow> {
  const operation = 'POST /v1/discrepancies/{id}/assignee'
  return await changeDiscrepancy(
    ctx,
    access,
    found,
    operation,
    async (tx, { merchantCode, id, assignee }) => {
      const written = await tx`
        update discrepancies set assignee = ${name}
        where merchant_code = ${merchantCode} and id = ${id} and resolved_at is null`
      if (written.count === 0) return undefined
      const change = { field: 'discrepancy_assignee' as const, before: assignee, after: name }
      return { ...change, verb: 'assigned', reason: name ?? 'nobody' }
    },
  )
}
