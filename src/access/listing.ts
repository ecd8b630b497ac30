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

/** What the rows of a list are read with. */
export type ListingContext = { db: ReadDatabase; encryption: Pick<DataKeys, 'decrypt'> }

type Filters<Query extends z.ZodRawShape> = z.output<z.ZodObject<Query>>

export type Filter<Query extends z.ZodRawShape> = Filters<Query> & {
  merchants: readonly string[]
  /** All accounts are asked for, and may be read: what belongs to none is in the list. */
  coversAll: boolean
}

/**
 * A list: how it is filtered, read and written out. It stands once, beside its rows, so that the API, the console and
 * every export of it agree.
 */
export type Listing<Query extends z.ZodRawShape, Row extends object> = {
  name: string
  scope: Scope
  /** The filters, as query parameters: those of the account and of the page come on top. */
  query: Query
  /** Of the ids in its cursors, where the database type requires one. */
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

/** For whom a list is read: the accounts, and whose turn it is among the reads. */
export type Reader = Pick<Access, 'merchants' | 'coversAll' | 'chainId'>

/** What a caller asks a list for: filters, one of the caller's accounts (all if left out), and which page. */
export type Asked<Query extends z.ZodRawShape> = Filters<Query> & {
  merchantCode?: string | undefined
  limit?: number | undefined
  cursor?: string | undefined
}

/** Reads a page of a list of the accounts that the caller may read. */
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
 * Reads a page whose cursors say which epoch they are from: behind one from before a restore there may be rows that
 * this database never had, or has no more.
 * @param idForm the form of the list's ids, where the database type requires one
 * @throws DomainError `cursor_expired` for a cursor from before a restore; `invalid_request` for one that was never
 *   issued
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

/** Answers with a page of a list, in the form that the request prefers. */
export async function serveListing<Query extends z.ZodRawShape, Row extends object>(
  ctx: ServingContext,
  c: HttpContext<HttpEnv>,
  listing: Listing<Query, Row>,
  asked: Asked<Query>,
): Promise<PageResponse<Row>> {
  return respondPage(c, await readListing(ctx, c.get('access'), listing, asked), listing.schema)
}

/** Reads a list to its end, each page a turn among the reads. Rows added meanwhile are newer than where it began. */
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
