-- Links to placeholders such as `undefined`, which an earlier version stored as users. They lead nobody anywhere, and kept their key from its
-- real user. The list is that of src/domain/user-ids.ts, in the usual spellings.
delete from user_links
 where customer_user_id ~ '^[0\s!-/:-@\[-`{-~]*$'
    or lower(regexp_replace(customer_user_id, '["''`\s_]', '', 'g')) = any (array[
         'nouser', 'no-user', 'null', 'none', 'nil', '(null)', 'nan', 'unidentified', 'undefined', 'unknown', 'anonymous', 'anon', 'guest',
         'default', 'test', 'n/a', 'na', 'true', 'false', 'unset', 'notset', '(notset)', 'empty', 'optional(nil)', '<null>', '<nil>',
         '[objectobject]', '-1', 'unknownuser', 'anonymoususer', 'guestuser', 'loggedout', 'logged-out', 'notloggedin', 'nouserid',
         'appuserid', '${userid}', '{{userid}}']);
