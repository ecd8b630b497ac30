import { createHash } from 'node:crypto'
import type { Hono } from 'hono'
import { raw } from 'hono/html'
import { narrowMerchants } from '../../access/authenticate.ts'
import { findTransaction } from '../../transactions/find-transaction.ts'
import { requestSync } from '../../transactions/request-sync.ts'
import type { FoundTransaction } from '../../transactions/types.ts'
import type { ConsoleContext } from '../context.ts'
import type { ConsoleEnv, ConsoleRequest } from '../env.ts'
import { TOKEN_FIELD } from '../form-guard.ts'
import { renderConsolePage } from '../layout.tsx'
import { defineAction, InvalidFieldsError } from '../page.ts'
import { storyPath } from '../paths.ts'
import { requireScope } from '../permissions.ts'
import { isRefresh } from '../session.ts'
import { t } from '../view.ts'
import { holdActions } from './hold.tsx'
import { loadStory } from './load-story.ts'
import { StoryParts } from './story-parts.tsx'
import { createNewsWaiter, type NewsWaiter, PAUSE_S } from './wait-for-news.ts'

const PATH = '/console/transactions/:merchant/:id'

/** Each form has a token of its own, and differs although the page shows the same. */
const TOKENS = new RegExp(`name="${TOKEN_FIELD}" value="[^"]*"`, 'g')

/** Renders the parts of the page about a transaction, with a tag that changes whenever a person sees something else. */
async function renderParts(ctx: ConsoleContext, c: ConsoleRequest, found: FoundTransaction) {
  const cursor = c.req.query('cursor')
  const story = await loadStory(ctx, c.get('access'), found, cursor)
  const html = String(await (<StoryParts {...{ ctx, story, cursor }} />).toString())
  const digest = createHash('sha256').update(html.replaceAll(TOKENS, '')).digest('base64url')
  return { html, etag: `"${digest.slice(0, 22)}"` }
}

/**
 * Finds the transaction that a page is about.
 * @throws DomainError `transaction_not_found`, also for one of an account that the person may not see
 */
async function findOwn(ctx: ConsoleContext, c: ConsoleRequest): Promise<FoundTransaction> {
  const { merchant = '', id = '' } = c.req.param()
  return await findTransaction(ctx, narrowMerchants(c.get('access'), merchant), id)
}

/** Serves the story of a transaction, and what can be done on it. */
export function storyRoutes(
  app: Hono<ConsoleEnv>,
  ctx: ConsoleContext,
  waitForNews: NewsWaiter = createNewsWaiter(ctx),
): void {
  app.get(PATH, async (c) => {
    requireScope(c, 'payments:read')
    const found = await findOwn(ctx, c)
    if (isRefresh(c)) return await respondRefresh(ctx, c, found, waitForNews)
    const { html, etag } = await renderParts(ctx, c, found)
    const title = t('story.title', { id: found.transaction.transactionId })
    return await renderConsolePage(c, { title }, <div data-refresh={etag}>{raw(html)}</div>)
  })
  askAction(app, ctx)
  for (const mount of holdActions) mount(app, ctx)
}

/** Asks the gateway now. */
const askAction = defineAction<FoundTransaction>({
  path: `${PATH}/sync`,
  scope: 'payments:read',
  load: findOwn,
  pageOf: (_, { transaction }) => storyPath(transaction),
  async run({ ctx, access, of: { transaction } }) {
    const { merchantCode, transactionId } = transaction
    // Of an account that is no longer in the settings everything is shown, but the gateway cannot be asked.
    if (!ctx.config.accounts.some((account) => account.merchantCode === merchantCode)) {
      const alerts = [t('story.accountGone')]
      throw new InvalidFieldsError({}, { alerts, code: 'merchant_not_found' })
    }
    await requestSync(ctx, access, narrowMerchants(access, merchantCode), transactionId)
    return { notice: 'asked' }
  },
})

/**
 * Answers the script of an open page: at once with the parts if they differ from those it has, or else with 304 when
 * something changes or the time is over. What changed is read with the next request, whose session is checked again.
 */
async function respondRefresh(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  found: FoundTransaction,
  waitForNews: NewsWaiter,
): Promise<Response> {
  const { html, etag } = await renderParts(ctx, c, found)
  const headers = { etag, vary: 'x-refresh', 'cache-control': 'no-store' }
  if (c.req.header('if-none-match') !== etag) return c.html(html, 200, headers)
  const waited = await waitForNews(found, c.req.raw.signal)
  const pause = waited === 'full' ? { 'retry-after': String(PAUSE_S) } : undefined
  return c.body(null, 304, { ...headers, ...pause })
}
