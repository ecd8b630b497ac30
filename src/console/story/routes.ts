import { Hono } from 'hono'
import { narrowMerchants } from '../../access/authenticate.ts'
import { requestSync } from '../../transactions/request-sync.ts'
import type { ConsoleContext } from '../context.ts'
import type { ConsoleEnv } from '../env.ts'
import { storyPath } from '../paths.ts'
import { redirectWith } from '../redirect.ts'
import { isRefresh } from '../session.ts'
import { t } from '../view.ts'
import { postHold } from './post-hold.ts'
import { findOwn, respondRefresh, respondStory } from './respond-story.tsx'
import { createNewsWaiter, type NewsWaiter } from './wait-for-news.ts'

/** Serves the story of a transaction, and what can be done on it. */
export function storyRoutes(
  ctx: ConsoleContext,
  waitForNews: NewsWaiter = createNewsWaiter(ctx),
): Hono<ConsoleEnv> {
  const app = new Hono<ConsoleEnv>()

  app.get('/console/transactions/:merchant/:id', async (c) => {
    const found = await findOwn(ctx, c, readKey(c.req.param()))
    if (!isRefresh(c)) return await respondStory(ctx, c, found)
    return await respondRefresh(ctx, c, found, waitForNews)
  })

  app.post('/console/transactions/:merchant/:id/sync', async (c) => {
    const found = await findOwn(ctx, c, readKey(c.req.param()))
    const { transaction } = found
    const access = c.get('access')
    const merchants = narrowMerchants(access, transaction.merchantCode)
    if (!isConfigured(ctx, transaction.merchantCode)) {
      return await respondStory(ctx, c, found, { status: 409, refusal: t('story.accountGone') })
    }
    await requestSync(ctx, access, merchants, transaction.transactionId)
    return redirectWith(c, storyPath(transaction), 'asked')
  })

  app.post('/console/payments/:merchant/:id/hold', async (c) =>
    postHold(ctx, c, 'payment', c.req.param()),
  )
  app.post('/console/refunds/:merchant/:id/hold', async (c) =>
    postHold(ctx, c, 'refund', c.req.param()),
  )
  return app
}

/** The audit log knows the account's parameter by its name. */
function readKey({ merchant: merchantCode, id: transactionId }: { merchant: string; id: string }) {
  return { merchantCode, transactionId }
}

/** Of an account that is no longer in the settings everything is shown, but the gateway cannot be asked. */
function isConfigured({ config }: ConsoleContext, merchantCode: string): boolean {
  return config.accounts.some((account) => account.merchantCode === merchantCode)
}
