import { createHash } from 'node:crypto'
import { raw } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { narrowMerchants } from '../../access/authenticate.ts'
import type { TransactionKey } from '../../db/transaction-key.ts'
import { Notice } from '../../platform/html/components.tsx'
import { findTransaction } from '../../transactions/find-transaction.ts'
import type { FoundTransaction } from '../../transactions/types.ts'
import type { ConsoleContext } from '../context.ts'
import type { ConsoleRequest } from '../env.ts'
import { TOKEN_FIELD } from '../forms/protect-forms.ts'
import { renderConsolePage } from '../layout.tsx'
import { requireScope } from '../permissions.ts'
import { t } from '../view.ts'
import { loadStory } from './load-story.ts'
import type { Draft } from './reason-form.tsx'
import { StoryParts, type StoryProps } from './story-parts.tsx'
import { type NewsWaiter, PAUSE_S } from './wait-for-news.ts'

/** The parts of the page as HTML, and a tag that changes whenever a person sees something else. */
export type RenderedParts = { html: string; etag: string }

/** Each form has a token of its own, and differs although the page shows the same. */
const TOKENS = new RegExp(`name="${TOKEN_FIELD}" value="[^"]*"`, 'g')

/** Renders the parts of the page about a transaction. */
export async function renderParts(props: StoryProps): Promise<RenderedParts> {
  const html = String(await (<StoryParts {...props} />).toString())
  const digest = createHash('sha256').update(html.replaceAll(TOKENS, '')).digest('base64url')
  return { html, etag: `"${digest.slice(0, 22)}"` }
}

/**
 * Finds the transaction that a page is about.
 * @throws DomainError `transaction_not_found`, also for one of an account that the person may not see
 */
export async function findOwn(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  { merchantCode, transactionId }: TransactionKey,
): Promise<FoundTransaction> {
  requireScope(c, 'payments:read')
  const merchants = narrowMerchants(c.get('access'), merchantCode)
  return await findTransaction(ctx, merchants, transactionId)
}

export type StoryOptions = {
  status?: ContentfulStatusCode
  /** A form that was refused, and why, where no field is to blame. */
  draft?: Draft | undefined
  refusal?: string | undefined
}

/** Answers with the story of a transaction. */
export async function respondStory(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  found: FoundTransaction,
  { status = 200, draft, refusal }: StoryOptions = {},
): Promise<Response> {
  const cursor = c.req.query('cursor')
  const story = await loadStory(ctx, c.get('access'), found, cursor)
  const { html, etag } = await renderParts({ c, ctx, story, cursor, draft })
  return await renderConsolePage(
    c,
    { title: t('story.title', { id: found.transaction.transactionId }), status },
    <>
      {refusal === undefined ? null : <Notice tone="bad">{refusal}</Notice>}
      {/* The answer to a form is not asked for again: its path takes no other request. */}
      <div data-refresh={status === 200 ? etag : undefined}>{raw(html)}</div>
    </>,
  )
}

/**
 * Answers the script of an open page: at once with the parts if they differ from those it has, or else with 304 when
 * something changes or the time is over. What changed is read with the next request, whose session is checked again.
 */
export async function respondRefresh(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  found: FoundTransaction,
  waitForNews: NewsWaiter,
): Promise<Response> {
  const cursor = c.req.query('cursor')
  const story = await loadStory(ctx, c.get('access'), found, cursor)
  const { html, etag } = await renderParts({ c, ctx, story, cursor })
  const headers = { etag, vary: 'x-refresh', 'cache-control': 'no-store' }
  if (c.req.header('if-none-match') !== etag) return c.html(html, 200, headers)
  const waited = await waitForNews(found, c.req.raw.signal)
  const pause = waited === 'full' ? { 'retry-after': String(PAUSE_S) } : undefined
  return c.body(null, 304, { ...headers, ...pause })
}
