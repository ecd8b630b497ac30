import { type Guard, guards } from './guard.ts'

export const PEOPLE: readonly Guard[] = [
  {
    file: 'src/access/people.ts',
    text: '  await tx`update sessions set ended_at = now() where person_id = ${id} and ended_at is null`\n',
    mutation: '',
    test: 'test/api/access/people.test.ts',
    claim: 'ending a person ends sessions and links in one commit',
    control:
      'two people cannot have the same name or e-mail address, whatever its letters and spaces',
  },
  {
    file: 'src/access/people.ts',
    text: '  await tx`select from actors as p where ${theirs} order by id for no key update`\n',
    mutation: '',
    test: 'test/api/access/people.test.ts',
    claim: 'a key of a person that is rotated while they are ended leaves no successor',
    control: 'ending a person ends sessions and links in one commit',
  },
  ...guards({ file: 'src/access/people.ts', test: 'test/console/people/people.test.ts' }, [
    {
      text: 'where ${theirs} and p.ended_at is null',
      mutation: 'where ${theirs} and false and p.ended_at is null',
      claim:
        'an admin of every account ends with a person the keys for these accounts, and learns how many',
      control: 'an ended person is out at once, and stays in the list',
    },
    {
      text: 'and ${isWithin(tx, reach)}\n    returning',
      mutation: 'and (true or ${isWithin(tx, reach)})\n    returning',
      claim:
        'an admin of one account ends with a person the keys for these accounts, and learns how many',
      control:
        'an admin of every account ends with a person the keys for these accounts, and learns how many',
    },
    {
      text: '  if (count === 0) return undefined\n',
      mutation: '  if (count < 0) return undefined\n',
      claim:
        'an admin of every account ends with a person the keys for these accounts, and learns how many',
      control: 'an ended person is out at once, and stays in the list',
    },
  ]),
  ...guards({ file: 'src/console/people.tsx', test: 'test/console/people/people.test.ts' }, [
    {
      text: '            await recordEntry(tx, ctx.log, access, write)',
      mutation: "            if (objectId === '') await recordEntry(tx, ctx.log, access, write)",
      claim:
        'an admin of every account ends with a person the keys for these accounts, and learns how many',
      control: 'an ended person is out at once, and stays in the list',
    },
    {
      text: '[personId, ...ended.map(({ id }) => id)]',
      mutation: '[personId, ...ended.slice(ended.length).map(({ id }) => id)]',
      claim:
        'an admin of every account ends with a person the keys for these accounts, and learns how many',
      control: 'an ended person is out at once, and stays in the list',
    },
    {
      text: "if (!keys) return { to: PATH, notice: 'personEndedBefore' }",
      mutation: "if (!keys) return { to: PATH, notice: 'personEnded' }",
      claim: 'a double click that ends the access of a person is told what the first one did',
      control: 'an ended person is out at once, and stays in the list',
    },
  ]),
  {
    file: 'src/access/setting-keys.ts',
    text: '(const objectId of theirs ? [DEMO_ADMIN, ...keyIds] : keyIds)',
    mutation: '(const objectId of theirs ? [DEMO_ADMIN] : [])',
    test: 'test/api/access/prepare-access.test.ts',
    claim:
      'a start that is no demo ends the demo: its key, what it was rotated to, its admin and links; and says so once',
    control: "a restart of the demo makes a new link, and ends the earlier one's with its session",
  },
  ...guards({ file: 'src/cli/people.ts', test: 'test/process/cli/people.test.ts' }, [
    {
      text: 'for (const key of keys) await recordChange(',
      mutation: 'for (const key of keys.slice(1)) await recordChange(',
      claim: 'a removed person has no key left: each is named, and is in the audit log',
      control: 'a removed person has no way in, and the name is free again',
    },
    {
      text: '[found.id, ...keys.map((key) => key.id)]',
      mutation: '[found.id, ...keys.slice(keys.length).map((key) => key.id)]',
      claim: 'a removed person has no key left: each is named, and is in the audit log',
      control: 'a removed person has no way in, and the name is free again',
    },
  ]),
  ...guards({ file: 'src/access/sessions.ts', test: 'test/api/access/sign-in.test.ts' }, [
    {
      text: 'where link_hash = ${hashKey(request.token)} and signed_in_at is null',
      mutation: 'where link_hash = ${hashKey(request.token)}',
      claim: 'a link opens one session, even if it is used twenty times at the same moment',
      control: 'a session is over when it is idle for half an hour, and no request revives it',
    },
    {
      text: 'and link_until > now() and ended_at is null\n',
      mutation: 'and link_until > now()\n',
      claim: 'a session that is opened while the person is being ended, is not',
      control: 'a session is over when it is idle for half an hour, and no request revives it',
    },
  ]),
  {
    file: 'src/access/people.ts',
    text: '  return sql`p.merchants <@ ${[...reach.merchants]}::text[]`',
    mutation: '  return sql`p.merchants && ${[...reach.merchants]}::text[]`',
    test: 'test/console/people/people.test.ts',
    claim: 'an admin of one account sees and manages only people who have no other',
    control: 'an admin of one account gives nobody an account that is not their own',
  },
  ...guards({ file: 'src/access/types.ts', test: 'test/api/access/people.test.ts' }, [
    {
      text: "  agent: [...READ, 'refunds:write'],",
      mutation: "  agent: [...READ, 'refunds:write', 'refunds:approve'],",
      claim: 'the role agent reads, and besides has only ["refunds:write"]',
      control:
        'two people cannot have the same name or e-mail address, whatever its letters and spaces',
    },
    {
      text: '  viewer: READ,',
      mutation: "  viewer: [...READ, 'refunds:write'],",
      claim: 'the role viewer reads, and besides has only []',
      control:
        'two people cannot have the same name or e-mail address, whatever its letters and spaces',
    },
    {
      text: '  operator: [...READ, ...OPERATE],',
      mutation: "  operator: [...READ, 'refunds:write', ...OPERATE],",
      claim: 'the role operator reads, and besides has only ["ops","webhooks:write","cards:read"]',
      control:
        'two people cannot have the same name or e-mail address, whatever its letters and spaces',
    },
    {
      text: "  approver: [...READ, 'refunds:approve'],",
      mutation: "  approver: [...READ, 'refunds:approve', 'refunds:write'],",
      claim: 'the role approver reads, and besides has only ["refunds:approve"]',
      control:
        'two people cannot have the same name or e-mail address, whatever its letters and spaces',
    },
  ]),
  {
    file: 'src/access/principal.ts',
    text: 'LIVE_SESSION_SQL = `(s.ended_at is null and s.expires_at > now()',
    mutation: 'LIVE_SESSION_SQL = `(s.ended_at is null',
    test: 'test/api/access/sign-in.test.ts',
    claim: 'a session is over when it is twelve hours old, and no request revives it',
    control: 'a session is over when it is idle for half an hour, and no request revives it',
  },
  {
    file: 'src/access/principal.ts',
    text: 'order by id for no key update`',
    mutation: 'order by id`',
    test: 'test/races/sessions.test.ts',
    claim: 'of two admins who end a session of each other at once, one does, and the other is out',
    control: 'an admin who ends the session of another is not out',
  },
]
