import { Hono } from 'hono'
import { recordWrite } from '../../access/audit.ts'
import { endSession, listSessions } from '../../access/sessions.ts'
import { DomainError } from '../../errors.ts'
import { isUuid } from '../../http/fields.ts'
import { Card, Facts } from '../../platform/html/components.tsx'
import { runInTransaction } from '../../platform/postgres/transaction.ts'
import type { ConsoleContext } from '../context.ts'
import { removeCookie } from '../cookies.ts'
import type { ConsoleEnv, ConsoleRequest } from '../env.ts'
import { renderConsolePage } from '../layout.tsx'
import { describeRoles } from '../person-facts.tsx'
import { redirectWith } from '../redirect.ts'
import { requireOwnSession } from '../session.ts'
import { SessionTable } from '../session-table.tsx'
import { t } from '../view.ts'

const PATH = '/console/account'
const END_PATH = `${PATH}/sessions/:sessionId/end`
const SIGN_OUT_PATH = '/console/sign-out'

/** Serves a person's own page: who they are here, and their sessions. */
export function accountRoutes(ctx: ConsoleContext): Hono<ConsoleEnv> {
  async function end(c: ConsoleRequest, sessionId: string, operation: string): Promise<void> {
    const { personId } = requireOwnSession(c)
    await runInTransaction(ctx.sql, async (tx) => {
      const write = { operation, merchantCode: null, objectId: sessionId }
      await recordWrite(tx, ctx.log, c.get('access'), write)
      const isEnded = isUuid(sessionId) && (await endSession(tx, personId, sessionId))
      if (!isEnded) throw new DomainError('not_found', 'There is no such session')
    })
  }

  return new Hono<ConsoleEnv>()
    .get(PATH, async (c) => {
      const sessions = await listSessions(ctx.sql, requireOwnSession(c).personId)
      return renderAccount(c, sessions)
    })
    .post(END_PATH, async (c) => {
      const sessionId = c.req.param('sessionId')
      await end(c, sessionId, 'POST /console/account/sessions/{sessionId}/end')
      return redirectWith(c, PATH, 'sessionEnded')
    })
    .post(SIGN_OUT_PATH, async (c) => {
      await end(c, requireOwnSession(c).id, `POST ${SIGN_OUT_PATH}`)
      removeCookie(ctx, c, 'session')
      removeCookie(ctx, c, 'draft')
      return redirectWith(c, '/console/sign-in', 'signedOut')
    })
}

function renderAccount(c: ConsoleRequest, sessions: Awaited<ReturnType<typeof listSessions>>) {
  const { name, roles } = requireOwnSession(c)
  const { coversAll, merchants } = c.get('access')
  const accounts = coversAll ? t('account.everyMerchant') : merchants.join(', ')
  return renderConsolePage(
    c,
    { title: t('frame.pages.account'), current: 'account' },
    <>
      <Card title={t('account.you')}>
        <Facts
          rows={[
            [t('field.name'), name],
            [t('field.roles'), describeRoles(roles)],
            [t('field.merchants'), accounts],
          ]}
        />
      </Card>
      <Card title={t('account.sessions.title')}>
        <p>{t('account.sessions.explain')}</p>
        <SessionTable c={c} sessions={sessions} endPath={(id) => `${PATH}/sessions/${id}/end`} />
      </Card>
    </>,
  )
}
