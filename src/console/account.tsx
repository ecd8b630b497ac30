import { nameOperation, recordWrite } from '../access/audit.ts'
import { EVERY_MERCHANT } from '../access/keys.ts'
import { LANGUAGES, TimeZone } from '../access/people.ts'
import { lockPeople } from '../access/principal.ts'
import { endSession, type ListedSession, listSessions, signIn } from '../access/sessions.ts'
import { ROLES } from '../access/types.ts'
import { DomainError } from '../errors.ts'
import { createAddressFinder } from '../http/client-address.ts'
import { isUuid } from '../http/fields.ts'
import { createRateLimiter, toSeconds } from '../platform/concurrency/rate-limiter.ts'
import { Badge, Card } from '../platform/html/components.tsx'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { cell, FieldFacts, type ListColumn, Rows, text, time } from './cells.tsx'
import type { ConsoleContext, ConsoleRequest } from './env.ts'
import { ActionForm, FormCard, Select, TextInput } from './forms.tsx'
import { renderConsolePage } from './layout.tsx'
import { definePage, InvalidFieldsError, type Mount } from './page.ts'
import { readCookie, recallPage, removeCookie, SIGN_IN, writeCookie } from './session.ts'
import { listTexts, t, usePerson, useView } from './view.ts'

const ACCOUNT = '/console/account'

export const accountPage = definePage({
  path: ACCOUNT,
  load: (ctx) => listSessions(ctx.db.sql, usePerson().id),
  async show(_, c, sessions) {
    const { name, roles } = usePerson()
    const { coversAll, merchants } = c.get('access')
    return {
      title: t('frame.pages.account'),
      current: 'account',
      body: (
        <>
          <Card title={name}>
            <PersonFacts roles={roles} merchants={coversAll ? [EVERY_MERCHANT] : merchants} />
          </Card>
          <Reading />
          <Card title={t('account.sessions.title')}>
            <p>{t('account.sessions.explain')}</p>
            <Sessions of={sessions} path={ACCOUNT} />
          </Card>
        </>
      ),
    }
  },
  actions: {
    reading: {
      async run({ ctx, c, fields }) {
        const language = LANGUAGES.find((one) => one === fields.language)
        const timeZone = TimeZone.safeParse(fields.timeZone?.trim())
        if (!language || !timeZone.success) {
          throw new InvalidFieldsError({ timeZone: t('account.reading.problem') })
        }
        const { id: personId } = usePerson()
        await changePerson(ctx, c, { personId }, async (tx) => {
          await tx`update actors set language = ${language}, time_zone = ${timeZone.data} where id = ${personId}`
        })
        return { notice: 'saved' }
      },
    },
    'sessions/:sessionId/end': {
      async run({ ctx, c }) {
        await endOwn(ctx, c, c.req.param('sessionId') ?? '')
        return { notice: 'sessionEnded' }
      },
    },
  },
})

function Reading() {
  const { language, zone } = useView()
  const options = LANGUAGES.map((value) => ({ value, label: t(`account.languages.${value}`) }))
  return (
    <FormCard
      {...{ title: t('account.reading.title'), action: `${ACCOUNT}/reading` }}
      {...{ submit: t('account.reading.save'), values: { language, timeZone: zone } }}
    >
      {(field) => (
        <>
          <Select {...field('language', t('account.reading.language'))} options={options} />
          <TextInput
            {...field('timeZone', t('account.reading.zone'), t('account.reading.zoneHint'))}
          />
        </>
      )}
    </FormCard>
  )
}

/** Changes a person. The change is recorded before the write, which may end the access of who does it. */
export async function changePerson<T>(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  { personId, objectId = personId }: { personId: string; objectId?: string },
  write: (tx: Tx) => Promise<T>,
): Promise<T> {
  const access = c.get('access')
  return await runInTransaction(ctx.db.sql, async (tx) => {
    await lockPeople(tx, [access.id, personId])
    const entry = { operation: nameOperation(c), merchantCode: null, objectId }
    await recordWrite(tx, ctx.log, access, entry)
    return await write(tx)
  })
}

async function endOwn(ctx: ConsoleContext, c: ConsoleRequest, objectId: string): Promise<void> {
  const { id: personId } = usePerson()
  await changePerson(ctx, c, { personId, objectId }, (tx) => endOne(tx, personId, objectId))
}

/** The value of `?link=` with which the sign-in page says that a link does not work. */
const REFUSED = 'refused'

/** Serves the sign-in, which needs no session. The token in the path takes the place of the form token. */
export const signInRoutes: Mount = (app, ctx) => {
  const findAddress = createAddressFinder(ctx.config.TRUSTED_PROXIES)
  const shared = { db: ctx.db, log: ctx.log, rates: createRateLimiter() }
  app.get(SIGN_IN, (c) => {
    const isReturning = readCookie(ctx, c, 'page') !== undefined
    const isRefused = c.req.query('link') === REFUSED
    const isOut = c.req.query('notice') === 'signedOut' && !readCookie(ctx, c, 'session')
    const notice = isOut ? t('notice.signedOut') : undefined
    return renderConsolePage(
      c,
      { title: isRefused ? t('signIn.refused') : t('signIn.invitation'), notice },
      <>
        {isRefused ? <p>{t('signIn.why')}</p> : null}
        <Invitation {...{ isReturning }} />
      </>,
    )
  })
  // The token is not looked up yet: mail scanners and previews open links, too.
  app.get(`${SIGN_IN}/:token`, (c) => renderButton(c, c.req.param('token')))
  app.post(`${SIGN_IN}/:token`, async (c) => {
    const address = findAddress(c.env.incoming)
    const result = await signIn(shared, {
      ...{ token: c.req.param('token'), address, requestId: c.get('requestId') },
      userAgent: c.req.header('user-agent') ?? '',
      replaces: readCookie(ctx, c, 'session'),
    })
    if (result.kind === 'limited') {
      const retryAfterS = toSeconds(result.waitMs)
      throw new DomainError('rate_limited', t('signIn.limited'), { retryAfterS })
    }
    if (result.kind === 'refused') {
      ctx.log.info({ address, requestId: c.get('requestId') }, 'a sign-in link was refused')
      return c.redirect(`${SIGN_IN}?link=${REFUSED}`, 303)
    }
    writeCookie(ctx, c, 'session', result.token)
    return c.redirect(recallPage(ctx, c, result.personId), 303)
  })
}

export const signOutRoutes: Mount = (app, ctx) => {
  app.post('/console/sign-out', async (c) => {
    await endOwn(ctx, c, usePerson().sessionId)
    removeCookie(ctx, c, 'session')
    removeCookie(ctx, c, 'page')
    return c.redirect(`${SIGN_IN}?notice=signedOut`, 303)
  })
}

function Invitation({ isReturning }: { isReturning: boolean }) {
  return (
    <Card title={t('signIn.how')}>
      <ol>
        {listTexts('signIn.steps').map(([, step]) => (
          <li>{step}</li>
        ))}
      </ol>
      {isReturning ? <p>{t('signIn.returning')}</p> : null}
    </Card>
  )
}

function renderButton(c: ConsoleRequest, token: string) {
  return renderConsolePage(
    c,
    { title: t('signIn.open') },
    <Card title={t('signIn.explain')}>
      <form method="post" action={`${SIGN_IN}/${encodeURIComponent(token)}`}>
        <button type="submit">{t('signIn.invitation')}</button>
      </form>
    </Card>,
  )
}

export const nameMerchant = (code: string) =>
  code === EVERY_MERCHANT ? t('account.everyMerchant') : code

/** @throws DomainError `not_found` if the session is not the person's */
export async function endOne(tx: Tx, personId: string, sessionId: string): Promise<void> {
  const isEnded = isUuid(sessionId) && (await endSession(tx, personId, sessionId))
  if (!isEnded) throw new DomainError('not_found', 'There is no such session')
}

export function PersonFacts(props: {
  email?: string | null
  roles: readonly string[]
  merchants: readonly string[]
}) {
  const { email, roles, merchants } = props
  const own = ROLES.filter((role) => roles.includes(role))
  return (
    <FieldFacts
      of={{
        email,
        roles: own.map((role) => <div>{t(`account.roles.${role}`)}</div>),
        merchants: merchants.map(nameMerchant).join(', '),
      }}
    />
  )
}

export function Sessions({ of, path }: { of: readonly ListedSession[]; path: string }) {
  const { sessionId } = usePerson()
  const columns: readonly ListColumn<ListedSession>[] = [
    cell('browser', ({ id, userAgent }) => (
      <>
        {userAgent}{' '}
        {id === sessionId ? <Badge tone="good">{t('account.sessions.thisBrowser')}</Badge> : null}
      </>
    )),
    text('address', ({ address }) => address),
    time('signedIn', ({ signedInAt }) => signedInAt),
    time('lastUsed', ({ lastUsedAt }) => lastUsedAt),
    time('ends', ({ expiresAt }) => expiresAt),
    cell('actions', ({ id }) => (
      <ActionForm
        {...{ action: `${path}/sessions/${id}/end`, submit: t('account.sessions.end') }}
        style="quiet"
      />
    )),
  ]
  const caption = t('field.sessions')
  return <Rows {...{ caption, columns, rows: of, empty: t('account.sessions.none') }} />
}
