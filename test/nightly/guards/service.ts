import { type Guard, guards } from './guard.ts'

export const SERVICE: readonly Guard[] = [
  {
    file: 'src/events/event.ts',
    text: "object: 'refund', scope: 'refunds:read' }",
    mutation: "object: 'refund', scope: 'payments:read' }",
    test: 'test/api/feed/read.test.ts',
    claim: 'a key gets the events its scopes allow, and is refused types beyond them',
    control: 'an empty feed returns a cursor that leads to the first event',
  },
  ...guards({ file: 'src/health/watch-outages.ts' }, [
    {
      text: '`update merchant_accounts set hold = hold where false;',
      mutation: '`select hold from merchant_accounts where false;',
      test: 'test/api/health/routes.test.ts',
      claim:
        'health is not ready once the probe (update on merchant_accounts) finds no room (53200), says so, and recovers by itself',
      control: 'health is alive and ready, without a key',
    },
    {
      text: 'replaces: [BACKLOG.name, ...',
      mutation: 'replaces: [found.name, ...',
      test: 'test/unit/platform/telemetry/outage-log.test.ts',
      claim:
        'a database that is away is no backlog as well: it is one line, whichever is noticed first',
      control:
        'an outage is one line when it begins, one a minute with what has failed, and one when it is over',
    },
    {
      text: 'isSign: cause.name !== DISK }',
      mutation: 'isSign: cause.name !== BACKLOG.name }',
      test: 'test/unit/platform/telemetry/outage-log.test.ts',
      claim: 'what is late while a disk is full is counted, and no sign that it still is',
      control:
        'an outage is one line when it begins, one a minute with what has failed, and one when it is over',
    },
    {
      text: 'if (found && here.isWorker)',
      mutation: "if (found?.name === 'worker' && here.isWorker)",
      test: 'test/api/health/routes.test.ts',
      claim:
        'the role worker says of an outage of the database that background work waits, and nothing of requests',
      control: 'health is alive and ready, without a key',
    },
    {
      text: "found?.name === 'database' && here.isEmbedded",
      mutation: "found?.name === 'embedded' && here.isEmbedded",
      test: 'test/process/outage.test.ts',
      claim:
        'the end of the embedded server is an error in the log, which says to restart the process',
      control: '/readyz is 503 while sessions report commits before they are durable',
    },
  ]),
  {
    file: 'src/platform/telemetry/outage-log.ts',
    text: 'code: condition.code ?? outage.condition.code',
    mutation: 'code: outage.condition.code',
    test: 'test/unit/platform/telemetry/outage-log.test.ts',
    claim: 'the lines of an outage have the code of its newest sign',
    control:
      'an outage is one line when it begins, one a minute with what has failed, and one when it is over',
  },
  ...guards(
    {
      test: 'test/unit/platform/telemetry/outage-log.test.ts',
      claim:
        'a server that stops because its disk is full is one outage: unreachable while it is, and said once a minute',
      control: 'what is late while a disk is full is counted, and no sign that it still is',
    },
    [
      {
        file: 'src/platform/postgres/describe-outage.ts',
        text: 'replaces: [DISK],',
        mutation: 'replaces: [],',
      },
      {
        file: 'src/platform/postgres/describe-outage.ts',
        text: "replaces: ['database'],",
        mutation: 'replaces: [],',
      },
      {
        file: 'src/platform/telemetry/outage-log.ts',
        text: 'if (outage.names.has(condition.name)) return',
        mutation: 'if (outage.names.size > 2) return',
      },
    ],
  ),
  {
    file: 'src/start/start.ts',
    text: '(isBroken ? log.error(line) : log.info(line))',
    mutation: '(isBroken ? log.info(line) : log.info(line))',
    test: 'test/process/outage.test.ts',
    claim:
      'the end of the embedded server is an error in the log, which says to restart the process',
    control: '/readyz is 503 while sessions report commits before they are durable',
  },
  {
    file: 'src/health/routes.ts',
    text: 'name === DISK)',
    mutation: '`${name} ` === DISK)',
    test: 'test/api/health/routes.test.ts',
    claim:
      'health is not ready once a notification (insert on ipn_events) finds no room (53100), says so, and recovers by itself',
    control: 'health is alive and ready, without a key',
  },
  {
    file: 'src/decisions/refund-routes.ts',
    text: '    ...withScope(scope),',
    mutation: '    ...{ ...withScope(scope), middleware: [] },',
    test: 'test/api/holds/holds.test.ts',
    claim: 'a hold on the payment needs a reason and the scope ops',
    control: 'a hold survives the answers of the gateway',
  },
  {
    file: 'src/http/client-address.ts',
    text: 'parts.slice(0, 4)',
    mutation: 'parts.slice(0, 8)',
    test: 'test/api/platform/http/connection-limit.test.ts',
    claim: 'an IPv4 address counts as one however it is written, and an IPv6 client by its /64',
    control: 'a network gets so many connections, and one more is closed; others are not affected',
  },
  {
    file: 'src/http/server.ts',
    text: '{ perHolder: perNetwork }',
    mutation: '{ perHolder: perNetwork + 1 }',
    test: 'test/api/platform/http/connection-limit.test.ts',
    claim: 'an IPv4 address counts as one however it is written, and an IPv6 client by its /64',
    control: 'in production a sixth is enough for one network: it takes many to fill the server',
  },
  {
    file: 'src/http/list.ts',
    text: "quote(GUARD.test(text) ? `'${text}` : text, separator)",
    mutation: 'quote(GUARD.test(text) ? text : text, separator)',
    test: 'test/unit/platform/http/csv.test.ts',
    claim: 'a cell "+84 90" is written "\'+84 90"',
    control: 'a cell "with, a comma" is written "\\"with, a comma\\""',
  },
  ...guards({ file: 'src/decisions/obstacles.ts', test: 'test/api/every-route.test.ts' }, [
    {
      text: "{ scope: 'refunds:approve', refusal",
      mutation: "{ scope: 'refunds:write', refusal",
      claim:
        'POST /v1/refunds/:refundId/approval is refused to a key that has every scope but its own',
      control: 'GET /v1/search refuses a parameter that it does not know, by its name',
    },
    {
      text: "    scope: 'refunds:write',",
      mutation: "    scope: 'refunds:read',",
      claim:
        'POST /v1/refunds/:refundId/cancellation is refused to a key that has every scope but its own',
      control: 'GET /v1/search refuses a parameter that it does not know, by its name',
    },
  ]),
  {
    file: 'src/refunds/request-routes.ts',
    text: "withDryRun(withScope('refunds:write'))",
    mutation: "withDryRun(withScope('refunds:read'))",
    test: 'test/api/every-route.test.ts',
    claim:
      'POST /v1/transactions/:transactionId/surplus-refund is refused to a key that has every scope but its own',
    control: 'GET /v1/search refuses a parameter that it does not know, by its name',
  },
]
