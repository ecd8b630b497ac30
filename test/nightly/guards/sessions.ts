import { type Guard, guards } from './guard.ts'

export const SESSIONS: readonly Guard[] = [
  {
    file: 'src/platform/postgres/hosts.ts',
    text: '=(primary|read-write)$/',
    mutation: '=/',
    test: 'test/unit/platform/postgres/hosts.test.ts',
    claim:
      'a database URL that ends with "?target_session_attrs=prefer-standby" has known parameters only: false',
    control:
      'a database URL that ends with "?target_session_attrs=read-write" has known parameters only: true',
  },
  ...guards({ file: 'src/platform/postgres/guard.ts' }, [
    {
      text: "    if (told !== undefined) emit('error', told)\n    emit('close', told !== undefined)\n  }\n  socket.emit = (event: string | symbol, ...given: unknown[]): boolean => {\n    const [first] = given\n    if (event === 'error') failure ??= first\n",
      mutation:
        "    if (told !== undefined && failure === undefined) emit('error', told)\n    emit('close', told !== undefined)\n  }\n  socket.emit = (event: string | symbol, ...given: unknown[]): boolean => {\n    const [first] = given\n    if (event === 'error') {\n      failure ??= first\n      return emit(event, ...given)\n    }\n    if (event === 'never') return true\n",
      test: 'test/process/postgres/lost-connection.test.ts',
      claim:
        'a statement that is reported as done was done, even one sent on a connection that breaks at that moment, over TLS',
      control: 'a listener receives notifications again after its connection was cut',
    },
    {
      text: 'phases.begin(bytes) ? dropUnsent(bytes) : bytes\n',
      mutation: 'phases.begin(bytes) && bytes.length === 0 ? dropUnsent(bytes) : bytes\n',
      test: 'test/process/postgres/tls.test.ts',
      claim:
        'a short statement sent on a connection that breaks at that moment does not corrupt its next session',
      control:
        'a server that answers "goodbye" costs the pool no connection: it works once the server does',
    },
    {
      text: '        line.refuse(refusal)\n',
      mutation: '        if (servers.count > 5) line.refuse(refusal)\n',
      test: 'test/process/postgres/unreachable-server.test.ts',
      claim: 'several servers of PGHOST are not connected to in turn without a pause',
      control: 'a server that still answers new connections, but not what it owes, is given up',
    },
    {
      text: '        if (!line) return refusal\n',
      mutation: '        if (!line || refusal) return refusal\n',
      test: 'test/process/postgres/unreachable-server.test.ts',
      claim: 'a pool keeps its size when some connections fail while others open',
      control: 'a server that still answers new connections, but not what it owes, is given up',
    },
    {
      text: '      isFlushed = requests.isFlushed\n',
      mutation: '      isFlushed = requests.isFlushed && requests.count > 0\n',
      test: 'test/process/postgres/unreachable-server.test.ts',
      claim: 'a server that vanished in the middle of a description is noticed',
      control: 'a server that still answers new connections, but not what it owes, is given up',
    },
  ]),
  {
    file: 'src/platform/postgres/tls.ts',
    text: '|E(HOST|NET)(UNREACH|DOWN))$/',
    mutation: '|E(NET)(UNREACH|DOWN))$/',
    test: 'test/unit/platform/postgres/reachable.test.ts',
    claim: 'a server to which a new connection fails with EHOSTUNREACH counts as reachable: false',
    control: 'a server to which a new connection fails with ENETUNREACH counts as reachable: false',
  },
  ...guards({ file: 'src/platform/postgres/guard.ts' }, [
    {
      text: '      return isConnectionLost(failure)\n',
      mutation: '      return failure === undefined || isConnectionLost(failure)\n',
      test: 'test/process/postgres/unreachable-server.test.ts',
      claim:
        'a server that closes every session as soon as it is open fails who waits, one by each attempt',
      control:
        'a server that closes every session before it is open fails who waits, one by each attempt',
    },
    {
      text: '      return isConnectionLost(failure)\n',
      mutation: '      return isConnectionLost(failure) || failure !== undefined\n',
      test: 'test/process/postgres/ended-session.test.ts',
      claim:
        'a session that the server ends fails the whole unit of work with CONNECTION_CLOSED, however many statements wait for their turn',
      control:
        'a session that the server ends fails the whole unit of work with 57P01, however many statements wait for their turn',
    },
    {
      text: '!(await isReachable())\n',
      mutation: '(!(await isReachable()) && silentMs >= silenceMs)\n',
      test: 'test/process/postgres/unreachable-server.test.ts',
      claim:
        'a server that vanished is noticed by a new connection that it does not answer, one that is busy is left alone',
      control: 'a network without a route to the server fails who waits, and not the process',
    },
    {
      text: '    const isGone = silentMs >= silenceMs ||',
      mutation: '    const isGone = silentMs >= 1_000 * silenceMs ||',
      test: 'test/process/postgres/unreachable-server.test.ts',
      claim: 'a server that still answers new connections, but not what it owes, is given up',
      control: 'a network without a route to the server fails who waits, and not the process',
    },
    {
      text: "    const isOfAll = refusal.of === 'writes' && servers",
      mutation: "    const isOfAll = refusal.of === 'session' && servers",
      test: 'test/api/platform/postgres/session-setup.test.ts',
      claim:
        'a read-only server loses every session with the first statement that it refuses, until it accepts writes again',
      control: 'a read-only server counts as out of reach, and opens no session',
    },
  ]),
  {
    file: 'src/platform/postgres/driver.ts',
    text: 'Math.min(2 ** servers.failures * 10, 500)',
    mutation: 'Math.min(2 ** (servers.failures - 100) * 10, 500)',
    test: 'test/process/postgres/unreachable-server.test.ts',
    claim: 'attempts to connect wait longer the more of them have failed',
    control: 'a network without a route to the server fails who waits, and not the process',
  },
  {
    file: 'src/platform/postgres/driver.ts',
    text: '    throw new UnreplicatedError(message)\n',
    mutation: "    if (message.includes('terminating')) throw new UnreplicatedError(message)\n",
    test: 'test/process/unreplicated.test.ts',
    claim: 'a cancelled wait leaves exactly its own commit unconfirmed: the others go on waiting',
    control: 'a commit whose server process ends while it waits is not confirmed',
  },
  {
    file: 'src/platform/postgres/guard.ts',
    text: "l.level else 'on' end, false)",
    mutation: "l.level else 'local' end, false)",
    test: 'test/api/platform/postgres/session-setup.test.ts',
    claim: 'every session commits durably where the default is off, and waits for no less',
    control: 'a read-only server counts as out of reach, and opens no session',
  },
  {
    file: 'src/platform/postgres/guard.ts',
    text: "l.level in ('on', 'remote_apply')",
    mutation: "l.level in ('on')",
    test: 'test/api/platform/postgres/session-setup.test.ts',
    claim: 'every session commits durably where the default is remote_apply, and waits for no less',
    control: 'every session commits durably where the default is off, and waits for no less',
  },
  {
    file: 'src/platform/postgres/guard.ts',
    text: 'as l (level);',
    mutation: "as l (level) where l.level not in ('on', 'remote_apply');",
    test: 'test/api/platform/postgres/session-setup.test.ts',
    claim: 'every session keeps its level when the server reads its settings again',
    control: 'every session commits durably where the default is off, and waits for no less',
  },
  {
    file: 'src/platform/postgres/messages.ts',
    text: 'isFatal || isRepeated || isOurs',
    mutation: 'isFatal || isRepeated || (isOurs && isFatal)',
    test: 'test/unit/platform/postgres/messages.test.ts',
    claim: 'an error of what raises the level of commits ends the session',
    control:
      'however a session is cut into chunks, the reader finds the error that ends it, and passes on what stands before',
  },
  {
    file: 'src/platform/postgres/messages.ts',
    text: '      const isDropped = isOurs()\n',
    mutation: '      const isDropped = isOurs() && chunk.length === 0\n',
    test: 'test/unit/platform/postgres/messages.test.ts',
    claim:
      'however a session is cut into chunks, the reader keeps from the driver what is not for it, up to where the server is ready',
    control:
      'however a session is cut into chunks, the reader passes everything else on, and to a session that only reads what refuses writes',
  },
  {
    file: 'src/platform/postgres/driver.ts',
    text: "url.replace(/[?#].*$/s, '')",
    mutation: "url.replace(/#.*$/s, '')",
    test: 'test/api/platform/postgres/session-setup.test.ts',
    claim: 'every session does so whatever its URL sets',
    control: 'every session of a migration does so, too',
  },
  {
    file: 'src/platform/postgres/pool.ts',
    text: "!['on', 'remote_apply'].includes(row.level)",
    mutation: "['off'].includes(row.level)",
    test: 'test/api/platform/postgres/session-setup.test.ts',
    claim: 'every session that does not is found out',
    control: 'every session of a migration does so, too',
  },
  ...guards({ file: 'src/platform/postgres/messages.ts' }, [
    {
      text: "else if (type === 'E' && isInRows) {",
      mutation: "else if (type === 'E' && isInRows && isDropped) {",
      test: 'test/process/postgres/ended-session.test.ts',
      claim: 'a statement that fails among its rows leaves the next answer whole',
      control: 'a statement that got no connection in time is refused, and does nothing later',
    },
    {
      text: "fields.severity === 'FATAL' || fields",
      mutation: "fields.severity === 'fatal' || fields",
      test: 'test/process/postgres/ended-session.test.ts',
      claim:
        'a session that the server ends fails its own statement with the reason, and nothing in the next session',
      control: 'a statement that got no connection in time is refused, and does nothing later',
    },
    {
      text: '(type || isDropped) && next > bytes.length) break\n',
      mutation: '(type || isDropped) && next > bytes.length + 60) break\n',
      test: 'test/unit/platform/postgres/messages.test.ts',
      claim:
        'however a session is cut into chunks, the reader finds the error that ends it, and passes on what stands before',
      control:
        'however a session is cut into chunks, the reader passes everything else on, and to a session that only reads what refuses writes',
    },
    {
      text: "  if (!isTold || value !== 'on') return undefined\n",
      mutation: "  if (!isTold || value !== 'yes') return undefined\n",
      test: 'test/api/platform/postgres/session-setup.test.ts',
      claim: 'a read-only server counts as out of reach, and opens no session',
      control: 'every session of a migration does so, too',
    },
  ]),
  {
    file: 'src/platform/postgres/statement-limits.ts',
    text: "{ strings: ['select'], args: [] }",
    mutation: '{ strings: statement.strings }',
    test: 'test/process/postgres/ended-session.test.ts',
    claim: 'a statement that got no connection in time is refused, and does nothing later',
    control:
      'a session that the server ends fails its own statement with the reason, and nothing in the next session',
  },
  {
    file: 'src/platform/postgres/statement-limits.ts',
    text: "isOpen ? CONNECTIONS_BUSY : 'CONNECT_TIMEOUT'",
    mutation: "isOpen ? 'CONNECT_TIMEOUT' : CONNECTIONS_BUSY",
    test: 'test/process/postgres/ended-session.test.ts',
    claim: 'a statement that got no connection in time is refused, and does nothing later',
    control:
      'a session that the server ends fails its own statement with the reason, and nothing in the next session',
  },
  {
    file: 'src/create-context.ts',
    text: 'createKeyCache(lookups.sql)',
    mutation: 'createKeyCache(sql)',
    test: 'test/process/unreplicated.test.ts',
    claim: 'whoever reads is answered while every connection for writes waits for a standby',
    control: 'a commit whose server process ends while it waits is not confirmed',
  },
  ...guards({ file: 'src/platform/postgres/statement-limits.ts' }, [
    {
      text: '    if (session && !isSessionOpen(session)) {\n',
      mutation: '    if (session && !isSessionOpen(session) && statement.active) {\n',
      test: 'test/process/postgres/ended-session.test.ts',
      claim:
        'a session that the server ends takes nothing more of its unit of work, which goes on, into the next session',
      control: 'a statement that got no connection in time is refused, and does nothing later',
    },
    {
      text: 'const CANCEL_AFTER_MS = 35_000\n',
      mutation: 'const CANCEL_AFTER_MS = 350_000\n',
      test: 'test/process/unreplicated.test.ts',
      claim:
        'a commit that waits for too long is cancelled, so that its server process waits no longer',
      control: 'a commit whose server process ends while it waits is not confirmed',
    },
    {
      text: '!isStatement(statement) || !statement.active)',
      mutation: '!isStatement(statement))',
      test: 'test/process/postgres/ended-session.test.ts',
      claim: 'a statement that is late is cancelled, and not those that wait behind it',
      control: 'a statement that got no connection in time is refused, and does nothing later',
    },
  ]),
  {
    file: 'src/platform/postgres/statement-limits.ts',
    text: '    statement.canceller?.(statement).catch(() => {})\n',
    mutation: '    void statement.canceller?.(statement)\n',
    test: 'test/process/postgres/tls.test.ts',
    claim: 'a request to cancel a statement is given up when the server has no certificate by then',
    control: 'sslmode=require uses TLS with a server that has it, and sends nothing in plain text',
  },
  {
    file: 'src/platform/postgres/transaction.ts',
    text: "await pipeline(send(last), runCommand(connection, 'commit', 'COMMIT'))",
    mutation: "await pipeline(runCommand(connection, 'commit', 'COMMIT'), send(last))",
    test: 'test/api/platform/postgres/pipeline.test.ts',
    claim:
      'statements of a pipeline sent with the commit reject with their own error, not with that of the commit',
    control:
      'statements of a pipeline run in the order of the arguments, and each sees those before it',
  },
  {
    file: 'src/platform/postgres/transaction.ts',
    text: '    return (await built).command\n',
    mutation: '    return (await built.finally(() => {})).command\n',
    test: 'test/api/platform/postgres/pipeline.test.ts',
    claim:
      'statements of a pipeline end with the last one before the commit: what it does is part of the unit of work',
    control:
      'statements of a pipeline run in the order of the arguments, and each sees those before it',
  },
  ...guards({ file: 'src/platform/postgres/tls.ts', test: 'test/process/postgres/tls.test.ts' }, [
    {
      text: '    if (response?.length !== 1)\n',
      mutation: '    if (response === undefined || response.length === 0)\n',
      claim: 'more than one byte in plain text before TLS is refused',
      control:
        'sslmode=require uses TLS with a server that has it, and sends nothing in plain text',
    },
    {
      text: "  if (!isAccepted) throw new Error('the database server has no TLS, but sslmode requires it')\n",
      mutation: '  if (!isAccepted) return socket\n',
      claim: 'sslmode=verify-ca refuses a server that has no TLS, and sends it nothing',
      control:
        'sslmode=prefer continues in plain text with a server that has no TLS, and disable does not request it',
    },
  ]),
  {
    file: 'src/platform/postgres/messages.ts',
    text: "if (type === 'E' && !isDropped && isOwed() && !hasReady(bytes, next)) break",
    mutation:
      "if (type === 'E' && !isDropped && isOwed() && !hasReady(bytes, next) && at < 0) break",
    test: 'test/process/postgres/ended-session.test.ts',
    claim:
      'an error of a session that ends before it is ready again is that of no statement in the next one',
    control: 'the last statement of a unit of work that fails is not committed by itself',
  },
  {
    file: 'src/platform/postgres/messages.ts',
    text: "SENT_AGAIN.test(fields.routine ?? '')",
    mutation: "SENT_AGAIN.test(fields.routine ?? '') && body.length === 0",
    test: 'test/process/postgres/ended-session.test.ts',
    claim: 'the last statement of a unit of work that fails is not committed by itself',
    control:
      'an error of a session that ends before it is ready again is that of no statement in the next one',
  },
  {
    file: 'src/platform/postgres/messages.ts',
    text: '(FetchPreparedStatement|RevalidateCachedQuery|',
    mutation: '(FetchPreparedStatement|',
    test: 'test/process/postgres/ended-session.test.ts',
    claim: 'a statement whose rows have another shape by now is not repeated: its session ends',
    control:
      'an error of a session that ends before it is ready again is that of no statement in the next one',
  },
  {
    file: 'src/platform/postgres/pool.ts',
    text: '!isDatabaseUnavailable(reason) && !isTransient(reason)',
    mutation: '!isDatabaseUnavailable(reason) || !isTransient(reason)',
    test: 'test/process/postgres/connection-start.test.ts',
    claim: 'a connection that the server is too slow to open does not end the process',
    control: 'a start at a proxy without a database behind it connects once, says why, and ends',
  },
  {
    file: 'src/access/principal.ts',
    text: 'where id = any(${ids}::uuid[]) order by id for no key update`',
    mutation: 'where id = any(${ids}::uuid[]) order by id`',
    test: 'test/races/sessions.test.ts',
    claim: 'of two admins who end a session of each other at once, one does, and the other is out',
    control: 'an admin who ends the session of another is not out',
  },
  {
    file: 'src/console/session.ts',
    text: "'check', 'format'])",
    mutation: "'check'])",
    test: 'test/console/sign-in/return.test.ts',
    claim:
      'a download that was asked for leads back to its list, and a file of another version to no sign-in',
    control: 'another person who signs in at that browser sees nothing of it',
  },
  {
    file: 'src/console/layout.tsx',
    text: "  return app.get('/console/assets/*', (c) => c.notFound())",
    mutation: "  return app.get('/console/assets/-', (c) => c.notFound())",
    test: 'test/console/sign-in/return.test.ts',
    claim:
      'a download that was asked for leads back to its list, and a file of another version to no sign-in',
    control: 'another person who signs in at that browser sees nothing of it',
  },
]
