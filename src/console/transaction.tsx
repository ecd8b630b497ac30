import { createHash } from 'node:crypto'
import type { Hono } from 'hono'
import { raw } from 'hono/html'
import { type Child, Fragment } from 'hono/jsx'
import { narrowMerchants } from '../access/authenticate.ts'
import { Card, Facts } from '../platform/html/components.tsx'
import { findTransaction, waitForTransaction } from '../transactions/find-transaction.ts'
import { requestSync } from '../transactions/request-sync.ts'
import type { FoundTransaction } from '../transactions/types.ts'
import { showTransaction } from '../transactions/view.ts'
import { Time } from './cells.tsx'
import type { ConsoleContext, ConsoleEnv, ConsoleRequest } from './env.ts'
import { TOKEN_FIELD } from './form-guard.ts'
import { HistoryParts, Messages, RawFigures, Timeline, Webhooks } from './history.tsx'
import { paymentHold } from './holds.tsx'
import { renderConsolePage } from './layout.tsx'
import { defineAction, InvalidFieldsError } from './page.ts'
import { storyPath } from './paths.ts'
import { isRefresh } from './session.ts'
import { readHistory, readStory, readTechnical } from './story.ts'
import {
  Actions,
  Discrepancies,
  listFacts,
  nameAsOf,
  optional,
  Payments,
  SameOrder,
  Warnings,
} from './story-parts.tsx'
import { findNextStep, Refunds } from './story-refunds.tsx'
import { requireScope, t } from './view.ts'
import { describeState } from './words.ts'

const PATH = '/console/transactions/:merchant/:id'

type Showing = { ctx: ConsoleContext; c: ConsoleRequest; found: FoundTransaction }

/** The ways to look at a transaction: what clerks need, who did what, and what came over the wire. */
const VIEWS = { story: showStory, history: showHistory, technical: showTechnical }

type View = keyof typeof VIEWS

const readView = (c: ConsoleRequest): View => {
  const named = c.req.query('view')
  return named === 'history' || named === 'technical' ? named : 'story'
}

/** Renders the parts of the page about a transaction, with a tag that changes whenever a person sees something else. */
async function renderParts(ctx: ConsoleContext, c: ConsoleRequest, found: FoundTransaction) {
  const show = VIEWS[readView(c)]
  const parts = await ctx.reads.run(c.get('access').chainId, (database) =>
    show({ ctx: { ...ctx, ...database }, c, found }),
  )
  const html = String(await (<Fragment>{parts}</Fragment>).toString())
  return { html, etag: tagParts(html) }
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
    const { transactionId, orderId } = found.transaction
    const title =
      orderId === null ? t('story.title', { id: transactionId }) : t('story.ofOrder', { orderId })
    const view = readView(c)
    return await renderConsolePage(
      c,
      { title: view === 'story' ? title : `${title}: ${t(`story.views.${view}`)}` },
      <>
        <Views view={view} path={storyPath(found.transaction)} />
        <div data-refresh={etag}>{raw(html)}</div>
      </>,
    )
  })
  askAction(app, ctx)
  paymentHold(app, ctx)
}

function Views({ view, path }: { view: View; path: string }) {
  const shown: [View, string][] = [
    ['story', path],
    ['history', `${path}?view=history`],
    ['technical', `${path}?view=technical`],
  ]
  return (
    <nav class="row" aria-label={t('story.views.label')}>
      {shown.map(([name, href]) => (
        <a href={href} aria-current={name === view ? 'page' : undefined}>
          {t(`story.views.${name}`)}
        </a>
      ))}
    </nav>
  )
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

async function showStory({ ctx, c, found }: Showing): Promise<Child> {
  const story = await readStory(ctx, c.get('access'), found)
  const shown = showTransaction(found)
  return (
    <>
      <Part name="state" announce>
        <Card title={describeState(shown)} id="state">
          <Warnings {...{ story, shown }} />
          <Facts rows={listFacts(shown, findNextStep(ctx, story, shown))} />
          <Actions {...{ story, shown }} />
        </Card>
      </Part>
      <Part name="payments">
        <Payments {...{ story, shown }} />
      </Part>
      <Part name="refunds">
        <Refunds {...{ ctx, story, shown }} />
      </Part>
      <Part name="order">
        <SameOrder orderId={shown.orderId} others={story.sameOrder} />
      </Part>
      <Part name="discrepancies">
        <Discrepancies rows={story.discrepancies} />
      </Part>
    </>
  )
}

async function showHistory({ ctx, c, found }: Showing): Promise<Child> {
  const cursor = c.req.query('cursor')
  const history = await readHistory(ctx, c.get('access'), found, cursor)
  return (
    <Part name="history">
      <HistoryParts {...{ history, cursor }} shown={showTransaction(found)} />
    </Part>
  )
}

async function showTechnical({ ctx, c, found }: Showing): Promise<Child> {
  const cursor = c.req.query('cursor')
  const technical = await readTechnical(ctx, c.get('access'), found, cursor)
  const shown = showTransaction(found)
  const { sync, updatedAt } = shown
  return (
    <>
      <Part name="sync">
        <Card title={t('story.sections.sync')}>
          <Facts
            rows={[
              [t('field.asOf'), nameAsOf(shown)],
              ...optional('nextQuery', sync.nextAttemptAt && <Time iso={sync.nextAttemptAt} />),
              ...optional('lastError', sync.lastError),
              [t('field.updated'), <Time iso={updatedAt} />],
            ]}
          />
        </Card>
      </Part>
      <Part name="timeline">
        <Timeline {...{ technical, shown, cursor }} />
      </Part>
      <Part name="messages">
        <Messages messages={technical.messages} />
      </Part>
      <Part name="webhooks">
        <Webhooks webhooks={technical.webhooks} />
      </Part>
      <Part name="raw">
        <RawFigures shown={shown} />
      </Part>
    </>
  )
}

/** A part that the script replaces; of an announced one it reads the heading aloud when that changes. */
function Part(props: { name: string; announce?: boolean; children: Child }) {
  const { name, announce = false, children } = props
  return (
    <div id={`part-${name}`} data-live={announce ? 'announce' : ''} tabindex={-1}>
      {children}
    </div>
  )
}

/** How long a page's request is held open (ms): shorter than proxies wait. */
const WAIT_MS = 25_000

/** Pages that may wait at once in this process; further ones ask again after a pause. */
const MAX_WAITING = 200

/** How long such a page pauses (s). */
export const PAUSE_S = 15

/** Waits until something about a transaction changes. */
export type NewsWaiter = (
  found: FoundTransaction,
  signal: AbortSignal,
) => Promise<'waited' | 'full'>

/** Creates the waiting of pages, which is bounded together. */
export function createNewsWaiter(
  ctx: ConsoleContext,
  { waitMs = WAIT_MS, maxWaiting = MAX_WAITING } = {},
): NewsWaiter {
  let waiting = 0
  return async (found, signal) => {
    if (waiting >= maxWaiting) return 'full'
    waiting += 1
    try {
      const before = formatMark(found)
      const isNews = (now: FoundTransaction) => formatMark(now) !== before
      const { merchantCode, transactionId } = found.transaction
      const wanted = { merchants: [merchantCode], transactionId }
      await waitForTransaction(ctx, wanted, isNews, waitMs, signal)
      return 'waited'
    } finally {
      waiting -= 1
    }
  }
}

/** Differs after every commit of a query, also if it changed nothing that order systems see. */
function formatMark({ transaction: t }: FoundTransaction): string {
  return JSON.stringify([t.version, t.asOf, t.attempts, t.abandonedAt, t.ipnCount, t.unconfirmed])
}

/** Each form has a token of its own, and differs although the page shows the same. */
const TOKENS = new RegExp(`name="${TOKEN_FIELD}" value="[^"]*"`, 'g')

/** A tag that changes whenever a person sees something else. */
export function tagParts(html: string): string {
  const digest = createHash('sha256').update(html.replaceAll(TOKENS, '')).digest('base64url')
  return `"${digest.slice(0, 22)}"`
}
