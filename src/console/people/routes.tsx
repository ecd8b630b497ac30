import { Hono } from 'hono'
import { recordWrite } from '../../access/audit.ts'
import { addPerson, endPerson, findPerson, listPeople, type Person } from '../../access/people.ts'
import { endSession, listSessions } from '../../access/sessions.ts'
import { createSignInLink, formatSignInUrl } from '../../access/sign-in.ts'
import { DomainError } from '../../errors.ts'
import { isUuid } from '../../http/fields.ts'
import { runInTransaction } from '../../platform/postgres/transaction.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { endEndpoints } from '../../webhooks/owner.ts'
import type { ConsoleContext } from '../context.ts'
import type { ConsoleEnv, ConsoleRequest } from '../env.ts'
import { readDraft } from '../forms/draft.ts'
import { readForm } from '../forms/protect-forms.ts'
import { requireRecentSignIn, requireRole } from '../permissions.ts'
import { redirectWith } from '../redirect.ts'
import { t } from '../view.ts'
import { renderLink, renderPeople, renderPerson } from './pages.tsx'
import { readPerson } from './read-person.ts'

const PATH = '/console/people'

const pathOf = ({ id }: Pick<Person, 'id'>) => `${PATH}/${id}`

/** Serves the admins' pages: who may use the console. An admin sees those whose accounts they have all. */
export function peopleRoutes(ctx: ConsoleContext): Hono<ConsoleEnv> {
  /** Changes a person whom the admin manages, and records it. */
  async function change<T>(
    c: ConsoleRequest,
    action: string,
    write: (tx: Tx, person: Person) => Promise<T>,
  ): Promise<T> {
    requireRole(c, 'admin')
    requireRecentSignIn(c)
    return await runInTransaction(ctx.sql, async (tx) => {
      const person = await find(tx, c)
      const operation = `POST ${PATH}/{personId}/${action}`
      // Before the write, which may end the admin's own access.
      await recordWrite(tx, ctx.log, c.get('access'), {
        operation,
        merchantCode: null,
        objectId: person.id,
      })
      return await write(tx, person)
    })
  }

  return new Hono<ConsoleEnv>()
    .get(PATH, async (c) => {
      requireRole(c, 'admin')
      return renderPeople(c, await listPeople(ctx.sql, c.get('access')), readDraft(c, PATH), {})
    })
    .post(PATH, async (c) => {
      requireRole(c, 'admin')
      requireRecentSignIn(c)
      const form = await readForm(c)
      const added = await add(ctx, c, readPerson(form, c.get('access')))
      if (added.kind === 'added') return redirectWith(c, pathOf(added), 'personAdded')
      const people = await listPeople(ctx.sql, c.get('access'))
      return renderPeople(c, people, form, added.problems)
    })
    .get(`${PATH}/:personId`, async (c) => {
      requireRole(c, 'admin')
      const person = await find(ctx.sql, c)
      return renderPerson(c, person, await listSessions(ctx.sql, person.id))
    })
    .post(`${PATH}/:personId/link`, async (c) => {
      const made = await change(c, 'link', async (tx, person) => ({
        person,
        link: await createSignInLink(tx, person.id),
      }))
      const baseUrl = ctx.config.CONSOLE_BASE_URL ?? new URL(c.req.url).origin
      return renderLink(c, made.person, formatSignInUrl(baseUrl, made.link), made.link.expiresAt)
    })
    .post(`${PATH}/:personId/sessions/:sessionId/end`, async (c) => {
      const sessionId = c.req.param('sessionId')
      const person = await change(c, 'sessions/{sessionId}/end', async (tx, found) => {
        const isEnded = isUuid(sessionId) && (await endSession(tx, found.id, sessionId))
        if (!isEnded) throw new DomainError('not_found', 'There is no such session')
        return found
      })
      return redirectWith(c, pathOf(person), 'sessionEnded')
    })
    .post(`${PATH}/:personId/end`, async (c) => {
      await change(c, 'end', endAccess)
      return redirectWith(c, PATH, 'personEnded')
    })
}

/** Ends the access of a person, and the webhook endpoints that belong to the person. */
async function endAccess(tx: Tx, { id }: Person): Promise<void> {
  await endPerson(tx, id)
  await endEndpoints(tx, id)
}

/** @throws DomainError `not_found`, also for a person with accounts that the admin does not have */
async function find(tx: Tx, c: ConsoleRequest): Promise<Person> {
  const id = c.req.param('personId') ?? ''
  const person = isUuid(id) ? await findPerson(tx, id, c.get('access')) : undefined
  if (!person) throw new DomainError('not_found', 'There is no such person')
  return person
}

async function add(ctx: ConsoleContext, c: ConsoleRequest, read: ReturnType<typeof readPerson>) {
  if (read.kind === 'invalid') return read
  return await runInTransaction(ctx.sql, async (tx) => {
    const added = await addPerson(tx, read.person)
    if (added.kind === 'taken') {
      const problems =
        added.by === 'name'
          ? { name: t('people.add.problems.nameTaken') }
          : { email: t('people.add.problems.emailTaken') }
      return { kind: 'invalid' as const, problems }
    }
    const write = { operation: `POST ${PATH}`, merchantCode: null, objectId: added.id }
    await recordWrite(tx, ctx.log, c.get('access'), write)
    return added
  })
}
