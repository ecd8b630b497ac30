import { recordWrite } from '../access/audit.ts'
import { EVERY_MERCHANT } from '../access/keys.ts'
import { LANGUAGES, TimeZone } from '../access/people.ts'
import { lockPeople } from '../access/principal.ts'
import { listSessions } from '../access/sessions.ts'
import { Card } from '../platform/html/components.tsx'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { ConsoleContext } from './context.ts'
import type { ConsoleRequest } from './env.ts'
import { Form, Select, TextInput } from './forms.tsx'
import { definePage, InvalidFieldsError, nameOperation } from './page.ts'
import { endOne, PersonFacts, Sessions } from './person-parts.tsx'
import { nameIn, t, useKept, usePerson, useView } from './view.ts'

const ACCOUNT = '/console/account'

/** A person's own page: who they are here, how they read, and their sessions. */
export const accountPage = definePage({
  path: ACCOUNT,
  load: (ctx) => listSessions(ctx.sql, usePerson().id),
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
          <Card title={t('account.reading.title')}>
            <Reading />
          </Card>
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
      async run({ ctx, c, access, fields }) {
        const language = LANGUAGES.find((one) => one === fields.language)
        const timeZone = TimeZone.safeParse(fields.timeZone?.trim())
        if (!language || !timeZone.success) {
          throw new InvalidFieldsError({ timeZone: t('account.reading.problem') })
        }
        const { id } = usePerson()
        await runInTransaction(ctx.sql, async (tx) => {
          const write = { operation: nameOperation(c), merchantCode: null, objectId: id }
          await lockPeople(tx, [id])
          await recordWrite(tx, ctx.log, access, write)
          await tx`update actors set language = ${language}, time_zone = ${timeZone.data} where id = ${id}`
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

/** The language and the zone of a person. */
function Reading() {
  const action = `${ACCOUNT}/reading`
  const { fields, problems } = useKept(action)
  const { language, zone } = useView()
  return (
    <Form action={action} stacked>
      <Select
        {...{ name: 'language', label: t('account.reading.language') }}
        value={fields.language ?? language}
        options={LANGUAGES.map((value) => ({ value, label: nameIn('account.languages', value) }))}
      />
      <TextInput
        {...{ name: 'timeZone', label: t('account.reading.zone'), problem: problems.timeZone }}
        hint={t('account.reading.zoneHint')}
        value={fields.timeZone ?? zone}
      />
      <button type="submit">{t('account.reading.save')}</button>
    </Form>
  )
}

/** Ends a session of the person who asks, and records it. */
export async function endOwn(ctx: ConsoleContext, c: ConsoleRequest, sessionId: string) {
  await runInTransaction(ctx.sql, async (tx) => {
    const write = { operation: nameOperation(c), merchantCode: null, objectId: sessionId }
    const { id } = usePerson()
    await lockPeople(tx, [id])
    await recordWrite(tx, ctx.log, c.get('access'), write)
    await endOne(tx, id, sessionId)
  })
}
