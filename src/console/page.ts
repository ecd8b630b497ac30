import type { Hono } from 'hono'
import type { Child } from 'hono/jsx'
import { z } from 'zod'
import type { Scope } from '../access/keys.ts'
import type { Access, Role } from '../access/types.ts'
import { DomainError, type RefusalCode } from '../errors.ts'
import { Reason } from '../refunds/request-schema.ts'
import type { ConsoleContext, ConsoleEnv, ConsoleRequest, FormFields } from './env.ts'
import { type KeptForm, pageSaying, pageWith } from './kept.ts'
import { type PageOptions, renderConsolePage } from './layout.tsx'
import { namePage, readFields, readPath } from './session.ts'
import { findText, type NoticeCode, type PlainKey } from './texts/text.ts'
import { findIn, requireRole, requireScope, t, usePerson, useView } from './view.ts'

type Needs = { scope?: Scope | undefined; role?: Role | undefined }

export type Asked<Subject> = {
  ctx: ConsoleContext
  c: ConsoleRequest
  access: Access
  of: Subject
  fields: FormFields
}

/** Where an action leads, by default to its page, and with which message and the number in it. */
export type Done = { notice?: NoticeCode; count?: number; to?: string }

export type Action<Subject> = Needs & {
  /** Finds what the form is about, if its page does not. */
  load?: PageDefinition<Subject>['load']
  /** @throws InvalidFieldsError, DomainError if it is refused; then nothing was done */
  run(asked: Asked<Subject>): Promise<Done>
  /** Explains a refusal; undefined for one that has a page of its own. */
  explain?(error: DomainError): string | undefined
}

/** What a page is about, what it shows, and what its forms do, by the rest of their paths. */
type PageDefinition<Subject> = Needs & {
  path: string
  /** Finds what the path names. @throws DomainError if there is no such thing, or the person may not see it */
  load(ctx: ConsoleContext, c: ConsoleRequest): Promise<Subject> | Subject
  show(ctx: ConsoleContext, c: ConsoleRequest, of: Subject): Promise<PageOptions & { body: Child }>
  actions?: Readonly<Record<string, Action<Subject>>>
}

export type Mount = (app: Hono<ConsoleEnv>, ctx: ConsoleContext) => void

/** Defines a page. Its forms end in a redirect, so that Back and reload work everywhere. */
export function definePage<Subject>(page: PageDefinition<Subject>): Mount {
  const { path, actions = {} } = page
  return (app, ctx) => {
    app.get(path, async (c) => {
      require(c, page)
      const { body, ...options } = await page.show(ctx, c, await page.load(ctx, c))
      return await renderConsolePage(c, options, body)
    })
    for (const [name, action] of Object.entries(actions)) {
      const parts = name === '' ? 0 : name.split('/').length
      const pageOf = (c: ConsoleRequest) => {
        const named = readPath(c).split('/')
        return named.slice(0, named.length - parts).join('/')
      }
      const { scope = page.scope, role = page.role, load = page.load } = action
      const own = name === '' ? path : `${path}/${name}`
      defineAction({ ...action, scope, role, load, pageOf, path: own })(app, ctx)
    }
  }
}

/** Defines an action that is not under the path of its page. */
export function defineAction<Subject>(
  action: Action<Subject> &
    Pick<PageDefinition<Subject>, 'path' | 'load'> & {
      pageOf(c: ConsoleRequest, of: Subject): string
    },
): Mount {
  return (app, ctx) => {
    app.post(action.path, async (c) => {
      require(c, action)
      const of = await action.load(ctx, c)
      return await carryOut(ctx, c, action, of, choosePage(c, action.pageOf(c, of)))
    })
  }
}

/** Returns the page as the person had it open, with its query, if the form names it. */
function choosePage(c: ConsoleRequest, path: string): string {
  const page = namePage(c)
  return page.split('?')[0] === path ? page : path
}

function require(c: ConsoleRequest, { scope, role }: Needs): void {
  if (scope !== undefined) requireScope(c, scope)
  if (role !== undefined) requireRole(c, role)
}

type Back = Partial<Omit<KeptForm, 'action' | 'problems'>> & { code?: RefusalCode }

/** A form is not carried out. `problems` are by the names of its fields; `back` is what else its page shows. */
export class InvalidFieldsError extends Error {
  readonly problems: Readonly<Record<string, string>>
  readonly back: Back
  constructor(problems: Readonly<Record<string, string>>, back: Back = {}) {
    super('the form has problems')
    this.problems = problems
    this.back = back
  }
}

/** Carries out a form. A refusal leads back to the page, with the reason and the form filled in. */
async function carryOut<Subject>(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  action: Action<Subject>,
  of: Subject,
  page: string,
): Promise<Response> {
  const fields = readFields(c)
  const leadBack = (back: Partial<KeptForm>) =>
    c.redirect(pageWith(ctx, usePerson().id, page, { action: readPath(c), fields, ...back }), 303)
  try {
    const asked = { ctx, c, access: c.get('access'), of, fields }
    const { to = page, notice, count } = await action.run(asked)
    return c.redirect(notice ? pageSaying(ctx, usePerson().id, to, notice, count) : to, 303)
  } catch (error) {
    if (error instanceof InvalidFieldsError) {
      const { code = 'invalid_request', ...back } = error.back
      c.set('refusal', code)
      return leadBack({ problems: { ...error.problems }, ...back })
    }
    if (!(error instanceof DomainError)) throw error
    const alert = (action.explain ?? explainRefusal)(error)
    if (alert === undefined) throw error
    c.set('refusal', error.code)
    return leadBack({ alerts: [alert], evidence: [...error.evidence] })
  }
}

function explainRefusal(error: DomainError): string | undefined {
  if (error.changed) return t('decisions.refused.changed')
  return findIn('decisions.refused', error.code)
}

/** Explains a refusal to end what holds a refund back, which whoever asked for the refund may not do. */
export const explainHoldsBack = (error: DomainError) =>
  error.code === 'same_person' ? t('discrepancyPage.refused.same_person') : explainRefusal(error)

/** Reasons are one line: line breaks of a text area become spaces. */
const OneLine = z
  .string()
  .default('')
  .transform((text) => text.replaceAll(/\s+/g, ' ').trim())

const isReason = (text: string) => Reason.safeParse(text).success
const TOO_LONG = 'decisions.problems.tooLong' satisfies PlainKey

export const OptionalText = OneLine.refine(isReason, TOO_LONG).transform((text) =>
  text === '' ? undefined : text,
)

export const requireText = (missing: PlainKey) =>
  OneLine.refine((text) => text !== '', { message: missing, abort: true }).refine(
    isReason,
    TOO_LONG,
  )

/** A box, or what a hidden field says in place of one. */
export const Ticked = z
  .string()
  .optional()
  .transform((value) => value === 'true')

/** The schema's messages are keys of texts. @throws InvalidFieldsError with the first problem of each field */
export function parseFields<T>(schema: z.ZodType<T>, fields: FormFields): T {
  const parsed = schema.safeParse(fields)
  if (parsed.success) return parsed.data
  const problems: Record<string, string> = {}
  for (const { path, message } of parsed.error.issues) {
    problems[String(path[0])] ??= findText(useView().language, message) ?? message
  }
  throw new InvalidFieldsError(problems)
}
