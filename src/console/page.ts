import type { Hono } from 'hono'
import type { Child } from 'hono/jsx'
import { matchedRoutes } from 'hono/route'
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

/** Where an action leads: by default to its page, with a message. */
export type Done = { notice?: NoticeCode; to?: string }

export type Action<Subject> = Needs & {
  /** Finds what the form is about, where its page does not. */
  load?: PageDefinition<Subject>['load']
  /** @throws InvalidFieldsError, DomainError for what is refused; nothing was done then */
  run(asked: Asked<Subject>): Promise<Done>
  /** A refusal in words; undefined for one that has a page of its own. */
  explain?(error: DomainError): string | undefined
}

/** A page: what it is about, what it shows, and what its forms do, each by the rest of its path. */
export type PageDefinition<Subject> = Needs & {
  path: string
  /** Finds what the path names. @throws DomainError when there is no such thing, or the person may not see it */
  load(ctx: ConsoleContext, c: ConsoleRequest): Promise<Subject> | Subject
  show(ctx: ConsoleContext, c: ConsoleRequest, of: Subject): Promise<PageOptions & { body: Child }>
  actions?: Readonly<Record<string, Action<Subject>>>
}

export type Mount = (app: Hono<ConsoleEnv>, ctx: ConsoleContext) => void

/** Defines a page. Every form of it ends in a redirect, so that Back and reload work everywhere. */
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
      const definition = { ...action, scope, role, load, pageOf }
      defineAction({ ...definition, path: name === '' ? path : `${path}/${name}` })(app, ctx)
    }
  }
}

/** Defines what a form does whose page has another path. */
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

/** The page as the person had it open, with its query, if the form says so. */
function choosePage(c: ConsoleRequest, path: string): string {
  const page = namePage(c)
  return page.split('?')[0] === path ? page : path
}

function require(c: ConsoleRequest, { scope, role }: Needs): void {
  if (scope !== undefined) requireScope(c, scope)
  if (role !== undefined) requireRole(c, role)
}

/** The method and route of a request, as the audit log names it. */
export function nameOperation(c: ConsoleRequest): string {
  const route = matchedRoutes(c).at(-1)?.path ?? c.req.path
  return `${c.req.method} ${route.replaceAll(/:(\w+)/g, '{$1}')}`
}

type Back = Partial<Omit<KeptForm, 'action' | 'problems'>> & { code?: RefusalCode }

/** A form is not carried out: what is wrong with its fields, by name, and what else its page shows. */
export class InvalidFieldsError extends Error {
  readonly problems: Readonly<Record<string, string>>
  readonly back: Back
  constructor(problems: Readonly<Record<string, string>>, back: Back = {}) {
    super('the form has problems')
    this.problems = problems
    this.back = back
  }
}

/** Carries out a form. What was refused is shown on the page as it is now, with the form filled in and the reason. */
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
    const { to = page, notice } = await action.run({ ctx, c, access: c.get('access'), of, fields })
    return c.redirect(notice ? pageSaying(ctx, usePerson().id, to, notice) : to, 303)
  } catch (error) {
    if (error instanceof InvalidFieldsError) {
      const { code = 'invalid_request', ...back } = error.back
      c.set('refusal', code)
      return leadBack({ problems: { ...error.problems }, ...back })
    }
    const alert =
      error instanceof DomainError ? (action.explain ?? explainRefusal)(error) : undefined
    if (!(error instanceof DomainError) || alert === undefined) throw error
    c.set('refusal', error.code)
    return leadBack({ alerts: [alert], evidence: [...error.evidence] })
  }
}

export function explainRefusal(error: DomainError): string | undefined {
  if (error.changed) return t('decisions.refused.changed')
  return findIn('decisions.refused', error.code)
}

/** The same of what holds a refund back: whoever asked for that refund may not end it. */
export const explainHoldsBack = (error: DomainError) =>
  error.code === 'same_person' ? t('discrepancyPage.refused.same_person') : explainRefusal(error)

/** Line breaks of a text area become spaces: reasons are one line. */
const OneLine = z.string().transform((text) => text.replaceAll(/\s+/g, ' ').trim())

const isReason = (text: string) => Reason.safeParse(text).success

export const OptionalText = z
  .string()
  .optional()
  .pipe(OneLine.prefault(''))
  .refine(isReason, 'decisions.problems.tooLong' satisfies PlainKey)
  .transform((text) => (text === '' ? undefined : text))

export function requireText(missing: PlainKey) {
  return z
    .string()
    .optional()
    .pipe(OneLine.prefault(''))
    .refine((text) => text !== '', { message: missing, abort: true })
    .refine(isReason, 'decisions.problems.tooLong' satisfies PlainKey)
}

/** The messages of the schema are keys of texts; of each field the first problem is shown. */
export function parseFields<T>(schema: z.ZodType<T>, fields: FormFields): T {
  const parsed = schema.safeParse(fields)
  if (parsed.success) return parsed.data
  const problems: Record<string, string> = {}
  for (const { path, message } of parsed.error.issues) {
    problems[String(path[0])] ??= findText(useView().language, message) ?? message
  }
  throw new InvalidFieldsError(problems)
}
