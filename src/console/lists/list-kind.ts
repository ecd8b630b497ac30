import type { z } from '@hono/zod-openapi'
import type { Child } from 'hono/jsx'
import type { Scope } from '../../access/keys.ts'
import type { Page, Position } from '../../http/list.ts'
import type { Column } from '../../platform/html/components.tsx'
import type { ConsoleContext } from '../context.ts'
import type { TEXTS } from '../texts/en.ts'
import type { Filter, FilterValues } from './read-filters.ts'

/** What a page of a list is read with. */
export type ListRequest = {
  merchants: readonly string[]
  values: FilterValues
  limit: number
  after: Position | undefined
}

/** A list: how it is filtered, read and shown. Its rows are those of the API. */
export type ListKind<T extends object> = {
  name: keyof typeof TEXTS.lists.titles
  scope: Scope
  filters: readonly Filter[]
  /** Of the ids in its cursors, where the database type requires one. */
  idForm?: z.ZodType<string>
  load(ctx: ConsoleContext, request: ListRequest): Promise<Page<T>>
  schema: z.ZodType<T>
  columns: readonly Column[]
  show(row: T): readonly Child[]
}
