import { z } from 'zod'
import type { Scope } from '../../../access/keys.ts'
import type { Access } from '../../../access/types.ts'
import type { DiscrepancyRow } from '../../../discrepancies/kinds.ts'
import { listOpenDiscrepancies, OPEN_PAGE } from '../../../discrepancies/store.ts'
import { cutPage, type Position, readCursor } from '../../../http/list.ts'
import {
  listWaitingRefunds,
  WAITING_PAGE,
  type WaitingRefund,
  type WaitingStatus,
} from '../../../refunds/find.ts'
import { listTroubledEndpoints, type TroubledEndpoint } from '../../../webhooks/delivery-log.ts'
import { listVisibleOwners } from '../../../webhooks/find-endpoints.ts'
import type { ConsoleContext } from '../../context.ts'

export const SECTION_NAMES = [
  'approvals',
  'reviews',
  'overdue',
  'discrepancies',
  'endpoints',
] as const

export type SectionName = (typeof SECTION_NAMES)[number]

/** Whoever has one of these scopes sees the section. */
const SCOPES: Record<SectionName, readonly Scope[]> = {
  approvals: ['refunds:approve', 'refunds:write'],
  reviews: ['ops'],
  overdue: ['ops'],
  discrepancies: ['ops'],
  endpoints: ['webhooks:write'],
}

/** A page of a section; `next` leads on to the following one. */
export type Rows<T> = { rows: T[]; next: Record<string, string> | null }

export type Section = { name: SectionName } & (
  | { name: 'approvals' | 'reviews' | 'overdue'; page: Rows<WaitingRefund> }
  | { name: 'discrepancies'; page: Rows<DiscrepancyRow> }
  | { name: 'endpoints'; page: Rows<TroubledEndpoint> }
)

/** Where a section begins: behind a row of the page before. */
export type SectionStart = { cursor?: string | undefined; kind?: string | undefined }

/** After so long a refund without an outcome is worth a look, even if a person cannot decide it yet (ms). */
const OVERDUE_MS = 86_400_000

/** Returns the sections that a person may see, in the order of the page. */
export function listVisibleSections({ scopes }: Pick<Access, 'scopes'>): SectionName[] {
  return SECTION_NAMES.filter((name) => SCOPES[name].some((scope) => scopes.includes(scope)))
}

/** How long a refund that was sent is left alone (ms). */
export function readOverdueMs({ config }: Pick<ConsoleContext, 'config'>): number {
  return Math.min(OVERDUE_MS, config.REFUND_RESOLVE_FOR_MS)
}

/**
 * Reads one page of a section, of the accounts that the person may see.
 * @throws DomainError `invalid_request` for a cursor of another list
 */
export async function readSection(
  ctx: ConsoleContext,
  access: Access,
  name: SectionName,
  start: SectionStart = {},
): Promise<Section> {
  switch (name) {
    case 'approvals':
      return { name, page: await readRefunds(ctx, access, ['awaiting_approval'], start) }
    case 'reviews':
      return { name, page: await readRefunds(ctx, access, ['needs_review'], start) }
    case 'overdue': {
      const forMs = readOverdueMs(ctx)
      return { name, page: await readRefunds(ctx, access, ['accepted', 'unknown'], start, forMs) }
    }
    case 'discrepancies':
      return { name, page: await readDiscrepancies(ctx, access, start) }
    case 'endpoints': {
      const rows = await listTroubledEndpoints(
        ctx,
        listVisibleOwners(access, undefined),
        MAX_ENDPOINTS,
      )
      return { name, page: { rows, next: null } }
    }
  }
}

/** More than this many failing endpoints are one problem, not many. */
const MAX_ENDPOINTS = 50

async function readRefunds(
  ctx: ConsoleContext,
  { merchants }: Access,
  statuses: readonly WaitingStatus[],
  { cursor }: SectionStart,
  forMs = 0,
): Promise<Rows<WaitingRefund>> {
  const after = readCursor(cursor, z.uuid())
  const found = await listWaitingRefunds(ctx, { merchants, statuses, forMs }, after)
  const locate = ({ waitingSince: time, refundId: id, merchantCode }: WaitingRefund): Position => {
    return { time, id, merchantCode }
  }
  const { data: rows, nextCursor } = cutPage({ rows: found }, WAITING_PAGE, locate, (row) => row)
  return { rows, next: nextCursor === null ? null : { cursor: nextCursor } }
}

async function readDiscrepancies(
  ctx: ConsoleContext,
  { merchants }: Access,
  { cursor, kind = '' }: SectionStart,
): Promise<Rows<DiscrepancyRow>> {
  const after = readCursor(cursor, z.string().regex(/^\d{1,18}$/))
  const found = await listOpenDiscrepancies(ctx, { merchants }, after && { ...after, kind })
  const locate = ({ at: time, id, merchantCode }: DiscrepancyRow): Position => {
    return { time, id: String(id), merchantCode }
  }
  const { data: rows, nextCursor } = cutPage({ rows: found }, OPEN_PAGE, locate, (row) => row)
  const last = rows.at(-1)
  return {
    rows,
    next: nextCursor === null || !last ? null : { cursor: nextCursor, kind: last.kind },
  }
}
