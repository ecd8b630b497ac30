import type { z } from '@hono/zod-openapi'
import type { Context as HttpContext } from 'hono'
import type { DataKeys } from '../db/data-keys.ts'
import { readEpoch } from '../db/installation.ts'
import type { ReadDatabase, Reads } from '../db/reads.ts'
import { DomainError } from '../errors.ts'
import {
  DEFAULT_LIMIT,
  type Page,
  type PageResponse,
  type Position,
  readCursor,
  refuseCursor,
  respondPage,
} from '../http/list.ts'
import type { HttpEnv } from '../http/problems.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { narrowMerchants } from './authenticate.ts'
import type { Scope } from './keys.ts'
import type { Access } from './types.ts'

export type ListingContext = { db: ReadDatabase; encryption: Pick<DataKeys, 'decrypt'> }

type Filters<Query extends z.ZodRawShape> = z.output<z.ZodObject<Query>>

export type Filter<Query extends z.ZodRawShape> = Filters<Query> & {
  merchants: readonly string[]
  /** Whether all accounts are asked for and may be read. Then the list includes what belongs to none. */
  coversAll: boolean
}

/** How a list is filtered, read and written. The API, the console and all exports of the list share its declaration. */
export type Listing<Query extends z.ZodRawShape, Row extends object> = {
  name: string
  scope: Scope
  /** The filters, as query parameters. Those of the account and of the page are added. */
  query: Query
  /** The form of the ids in its cursors, if their database type requires one. */
  idForm?: z.ZodType<string>
  schema: z.ZodType<Row>
  read(
    ctx: ListingContext,
    filter: Filter<Query>,
    limit: number,
    after: Position | undefined,
  ): Promise<Page<Row>>
}

export type ServingContext = { db: { reads: Reads }; encryption: Pick<DataKeys, 'decrypt'> }

/** Who reads a list: which accounts, and in whose queue of reads. */
export type Reader = Pick<Access, 'merchants' | 'coversAll' | 'chainId'>

/** What a caller asks a list for: filters, one of its accounts or by default all, and a page. */
export type Asked<Query extends z.ZodRawShape> = Filters<Query> & {
  merchantCode?: string | undefined
  limit?: number | undefined
  cursor?: string | undefined
}

export async function readListing<Query extends z.ZodRawShape, Row extends object>(
  { db: { reads }, encryption }: ServingContext,
  access: Reader,
  listing: Listing<Query, Row>,
  asked: Asked<Query>,
): Promise<Page<Row>> {
  const { merchantCode, limit = DEFAULT_LIMIT, cursor } = asked
  const merchants = narrowMerchants(access, merchantCode)
  const filter = { ...asked, merchants, coversAll: access.coversAll && merchantCode === undefined }
  return await reads.run(access.chainId, (db) =>
    readPage(db.sql, cursor, listing.idForm, (after) =>
      listing.read({ db, encryption }, filter, limit, after),
    ),
  )
}

/**
 * Reads a page. Its cursors contain the epoch, as the rows after a cursor from before a restore may differ.
 * @param idForm as in `Listing`
 * @throws DomainError `cursor_expired` for a cursor from before a restore, `invalid_request` for any other text
 */
export async function readPage<Row>(
  sql: Sql,
  cursor: string | undefined,
  idForm: z.ZodType<string> | undefined,
  read: (after: Position | undefined) => Promise<Page<Row>>,
): Promise<Page<Row>> {
  const epoch = await readEpoch(sql)
  const after = cursor === undefined ? undefined : readCursor(openCursor(cursor, epoch), idForm)
  const { data, nextCursor } = await read(after)
  return { data, nextCursor: nextCursor && `${epoch}.${nextCursor}` }
}

function openCursor(cursor: string, epoch: number): string {
  const [, of, position] = /^(\d{1,9})\.(.*)$/.exec(cursor) ?? []
  if (of === undefined || position === undefined) throw refuseCursor()
  if (of === String(epoch)) return position
  const detail = 'The cursor is from before the database was restored: read the list from its start'
  throw new DomainError('cursor_expired', detail)
}

export async function serveListing<Query extends z.ZodRawShape, Row extends object>(
  ctx: ServingContext,
  c: HttpContext<HttpEnv>,
  listing: Listing<Query, Row>,
  asked: Asked<Query>,
): Promise<PageResponse<Row>> {
  return respondPage(c, await readListing(ctx, c.get('access'), listing, asked), listing.schema)
}

/** Reads a list to its end; each page queues by itself. Rows that are added meanwhile are newer and not included. */
export async function* walkListing<Query extends z.ZodRawShape, Row extends object>(
  ctx: ServingContext,
  access: Reader,
  listing: Listing<Query, Row>,
  asked: Asked<Query>,
): AsyncGenerator<Row[]> {
  let cursor: string | null | undefined
  while (cursor !== null) {
    const page = { ...asked, limit: 200, cursor }
    const { data, nextCursor }: Page<Row> = await readListing(ctx, access, listing, page)
    yield data
    cursor = nextCursor
  }
}
