import { raw } from 'hono/html'
import { type Child, Fragment } from 'hono/jsx'
import { narrowMerchants } from '../access/authenticate.ts'
import { Card } from '../platform/html/components.tsx'
import { findTransaction } from '../transactions/find-transaction.ts'
import { requestSync } from '../transactions/request-sync.ts'
import type { FoundTransaction } from '../transactions/types.ts'
import { showTransaction } from '../transactions/view.ts'
import type { ConsoleContext, ConsoleRequest } from './env.ts'
import { HistoryParts, Messages, RawFigures, Timeline, Webhooks } from './history.tsx'
import { paymentHold } from './holds.tsx'
import { renderConsolePage } from './layout.tsx'
import { defineAction, InvalidFieldsError, type Mount } from './page.ts'
import { storyPath } from './paths.ts'
import { isRefresh } from './session.ts'
import { readHistory, readStory, readTechnical } from './story.ts'
import {
  Actions,
  Discrepancies,
  Payments,
  SameOrder,
  StoryFacts,
  SyncCard,
  Warnings,
} from './story-parts.tsx'
import { listStoryRefunds, Refunds } from './story-refunds.tsx'
import { requireScope, t } from './view.ts'
import { describeState } from './words.ts'

const PATH = '/console/transactions/:merchant/:id'

type Showing = { ctx: ConsoleContext; c: ConsoleRequest; found: FoundTransaction }

/** The views make parts by name, which the script replaces one by one. */
const VIEWS = { story: showStory, history: showHistory, technical: showTechnical }

const VIEW_NAMES = ['story', 'history', 'technical'] as const

const readView = (c: ConsoleRequest) =>
  VIEW_NAMES.find((name) => name === c.req.query('view')) ?? 'story'

/** When the heading of the state changes, the script announces it. */
async function renderParts(ctx: ConsoleContext, c: ConsoleRequest, found: FoundTransaction) {
  const parts = await ctx.db.reads.run(
    c.get('access').chainId,
    (database): Promise<Record<string, Child>> =>
      VIEWS[readView(c)]({ ctx: { ...ctx, db: { ...ctx.db, ...database } }, c, found }),
  )
  const shown = Object.entries(parts).map(([name, part]) => (
    <div id={`part-${name}`} data-live={name === 'state' ? 'announce' : ''} tabindex={-1}>
      {part}
    </div>
  ))
  return String(await (<Fragment>{shown}</Fragment>).toString())
}

async function findOwn(ctx: ConsoleContext, c: ConsoleRequest): Promise<FoundTransaction> {
  const { merchant = '', id = '' } = c.req.param()
  return await findTransaction(ctx, narrowMerchants(c.get('access'), merchant), id)
}

/**
 * Makes a tag that changes with every commit of the transaction, and every minute for what is recorded elsewhere,
 * such as webhooks. So an open page costs one read by key each time it asks.
 */
function tagPage({ now }: ConsoleContext, { transaction: of }: FoundTransaction): string {
  const { version, asOf, attempts, abandonedAt, ipnCount, unconfirmed, dueAt, leaseId } = of
  const minute = Math.floor(now().getTime() / 60_000)
  const mark = [version, asOf, attempts, abandonedAt, ipnCount, unconfirmed, dueAt, leaseId, minute]
  return `"${encodeURIComponent(mark.join())}"`
}

export const storyRoutes: Mount = (app, ctx) => {
  app.get(PATH, async (c) => {
    requireScope(c, 'payments:read')
    const found = await findOwn(ctx, c)
    const etag = tagPage(ctx, found)
    if (isRefresh(c)) {
      const headers = { etag, vary: 'x-refresh', 'cache-control': 'no-store' }
      if (c.req.header('if-none-match') === etag) return c.body(null, 304, headers)
      return c.html(await renderParts(ctx, c, found), 200, headers)
    }
    const html = await renderParts(ctx, c, found)
    const { transactionId, orderId } = found.transaction
    const title =
      orderId === null ? t('story.title', { id: transactionId }) : t('story.ofOrder', { orderId })
    const view = readView(c)
    return await renderConsolePage(
      c,
      { title: view === 'story' ? title : `${title}: ${t(`story.views.${view}`)}` },
      <>
        <nav class="row" aria-label={t('story.views.label')}>
          {VIEW_NAMES.map((name) => (
            <a
              href={`${storyPath(found.transaction)}${name === 'story' ? '' : `?view=${name}`}`}
              aria-current={name === view ? 'page' : undefined}
            >
              {t(`story.views.${name}`)}
            </a>
          ))}
        </nav>
        <div data-refresh={etag}>{raw(html)}</div>
      </>,
    )
  })
  askAction(app, ctx)
  paymentHold(app, ctx)
}

const askAction = defineAction<FoundTransaction>({
  path: `${PATH}/sync`,
  scope: 'payments:read',
  load: findOwn,
  pageOf: (_, { transaction }) => storyPath(transaction),
  async run({ ctx, access, of: { transaction } }) {
    const { merchantCode, transactionId } = transaction
    // An account that is no longer in the settings is shown, but the gateway cannot be asked about it.
    if (!ctx.config.accounts.some((account) => account.merchantCode === merchantCode)) {
      const alerts = [t('story.accountGone')]
      throw new InvalidFieldsError({}, { alerts, code: 'merchant_not_found' })
    }
    await requestSync(ctx, access, narrowMerchants(access, merchantCode), transactionId)
    return { notice: 'asked' }
  },
})

async function showStory({ ctx, c, found }: Showing) {
  const story = await readStory(ctx, c.get('access'), found)
  const shown = showTransaction(found)
  const refunds = listStoryRefunds(ctx, story, shown)
  const open = refunds.find(({ isEnded }) => !isEnded)
  const toRefund = story.surplus ? { text: t('story.next.surplus') } : undefined
  return {
    state: (
      <Card title={describeState(shown)} id="state">
        <Warnings {...{ story, shown }} />
        <StoryFacts shown={shown} open={open?.next ?? toRefund} />
        <Actions {...{ story, shown }} />
      </Card>
    ),
    payments: <Payments {...{ story, shown }} />,
    refunds: <Refunds {...{ story, rows: refunds }} />,
    order: <SameOrder {...{ story, shown }} />,
    discrepancies: <Discrepancies rows={story.discrepancies} />,
  }
}

async function showHistory({ ctx, c, found }: Showing) {
  const cursor = c.req.query('cursor')
  const history = await readHistory(ctx, c.get('access'), found, cursor)
  return { history: <HistoryParts {...{ history, cursor, shown: showTransaction(found) }} /> }
}

async function showTechnical({ ctx, c, found }: Showing) {
  const cursor = c.req.query('cursor')
  const technical = await readTechnical(ctx, c.get('access'), found, cursor)
  const shown = showTransaction(found)
  return {
    sync: <SyncCard shown={shown} />,
    timeline: <Timeline {...{ technical, shown, cursor }} />,
    messages: <Messages messages={technical.messages} />,
    webhooks: <Webhooks webhooks={technical.webhooks} />,
    raw: <RawFigures shown={shown} />,
  }
}
