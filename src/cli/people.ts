import { z } from 'zod'
import { EVERY_MERCHANT } from '../access/keys.ts'
import {
  addPerson,
  endPerson,
  findPeople,
  LANGUAGES,
  listPeople,
  type Person,
  TimeZone,
} from '../access/people.ts'
import { createSignInLink, formatSignInUrl, LINK_MINUTES } from '../access/sessions.ts'
import { ROLES } from '../access/types.ts'
import { findConsoleUrl } from '../config/config.ts'
import { readSome } from '../config/environment.ts'
import { DomainError } from '../errors.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { endEndpoints } from '../webhooks/endpoints.ts'
import { type Cli, command } from './command.ts'
import { listMerchants, recordChange } from './database.ts'
import { describeEnded, formatTable } from './print.ts'
import { Email, flag, NewPersonName } from './values.ts'

const linkOnly = flag('print the sign-in link alone')
const PersonRef = z.string().describe('the name or the e-mail address')

const ADD = command({
  name: 'people add',
  description: 'add a person, and make a sign-in link',
  args: ['name'],
  input: {
    name: NewPersonName.describe('the name, as it stands in the audit log'),
    role: z.array(z.enum(ROLES)).describe(`one of ${ROLES.join(', ')}; repeat it for several`),
    merchant: z
      .array(z.string())
      .default([EVERY_MERCHANT])
      .describe('an account to see; all of them if left out'),
    email: Email.nullable()
      .default(null)
      .describe('an e-mail address, which also names the person'),
    language: z
      .enum(LANGUAGES)
      .nullable()
      .default(null)
      .describe(`${LANGUAGES.join(' or ')}, for when the console has several`),
    timeZone: TimeZone.nullable()
      .default(null)
      .describe('of the days and times in the console, such as Asia/Ho_Chi_Minh'),
    linkOnly,
  },
  async run(cli, { role: roles, merchant: merchants, linkOnly, ...given }) {
    const invited = await cli.change(async (tx) => {
      for (const code of merchants) await listMerchants(tx, code)
      const added = await addPerson(tx, { ...given, roles, merchants })
      if (added.kind === 'taken') {
        const what = added.by === 'name' ? 'name' : 'e-mail address'
        throw new DomainError('invalid_request', `another person has this ${what}; see people list`)
      }
      await recordChange(cli, tx, 'people add', null, added.id)
      const { kind: _, ...person } = added
      return await invite(cli, tx, person)
    })
    return presentLink(invited, linkOnly)
  },
})

const LINK = command({
  name: 'people link',
  description: 'make another sign-in link',
  args: ['person'],
  input: { person: PersonRef, linkOnly },
  async run(cli, { person, linkOnly }) {
    const invited = await cli.change(async (tx) => invite(cli, tx, await findOne(tx, person)))
    return presentLink(invited, linkOnly)
  },
})

async function invite(cli: Cli, tx: Tx, person: Person) {
  const settings = readSome(cli.env, ['CONSOLE_BASE_URL', 'PORT'])
  const link = await createSignInLink(tx, person.id)
  await recordChange(cli, tx, 'people link', null, person.id)
  const url = formatSignInUrl(findConsoleUrl(settings, settings.PORT), link)
  return { ...person, link: url, linkExpiresAt: link.expiresAt }
}

function presentLink(value: Person & { link: string }, linkOnly = false) {
  const about = `\nThis link signs ${value.name} in once, within ${LINK_MINUTES} minutes. Pass it on to no one else: only its hash is stored, so it cannot be shown again.\n`
  return { value, text: `${value.link}\n${linkOnly ? '' : about}` }
}

const LIST = command({
  name: 'people list',
  description: 'list people by name; those whose access has ended come last',
  input: {},
  async run({ onDatabase }) {
    const value = await onDatabase(({ sql }) => listPeople(sql))
    const columns = [
      'name',
      'email',
      'roles',
      'merchants',
      'sessions',
      'lastUsedAt',
      'endedAt',
    ] as const
    return { value, text: formatTable(value, columns) }
  },
})

const REMOVE = command({
  name: 'people remove',
  description: "end a person's access, sessions and API keys now",
  args: ['person'],
  input: { person: PersonRef },
  async run(cli, { person }) {
    const { id, name, keys, endpoints } = await cli.change(async (tx) => {
      const found = await findOne(tx, person)
      const keys = (await endPerson(tx, found.id)) ?? []
      await recordChange(cli, tx, 'people remove', null, found.id)
      for (const key of keys) await recordChange(cli, tx, 'people remove', key.merchantCode, key.id)
      const endpoints = await endEndpoints(tx, [found.id, ...keys.map((key) => key.id)])
      return { ...found, keys, endpoints }
    })
    const value = { id, name, ended: true, keys, endpoints }
    const them = keys.length === 0 ? '' : formatTable(keys, ['id', 'name', 'merchantCode'])
    const count = keys.length === 1 ? '1 API key' : `${keys.length} API keys`
    const withThem = keys.length === 0 ? '' : `, and ${count} with it:`
    const text = `the access of ${name} has ended${withThem}\n${them}${describeEnded(endpoints)}`
    return { value, text }
  },
})

/** @param ref a name or an e-mail address */
async function findOne(tx: Tx, ref: string): Promise<Person> {
  const [person, second] = await findPeople(tx, ref)
  if (!person) {
    throw new DomainError('not_found', 'no person has this name or e-mail address; see people list')
  }
  if (!second) return person
  const detail = 'this is the name of one person and the e-mail address of another'
  throw new DomainError('invalid_request', detail)
}

export const PEOPLE = [ADD, LINK, LIST, REMOVE]
