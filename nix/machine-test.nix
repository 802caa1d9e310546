# A whole NixOS: a user without rights launches by a plan that the module
# pinned, and from inside looks for what must not be there.
{ self, pkgs }:
pkgs.testers.runNixOSTest {
  name = "claudebox";

  nodes.machine = {
    imports = [ self.nixosModules.default ];
    users.users.alice.isNormalUser = true;
    programs.claudebox = {
      enable = true;
      defaultProfile = "work";
      profiles.work = {
        packages = [ pkgs.hello ];
        settings = {
          network = "none";
          confirm = "never";
          env.GREETING = "from the profile";
        };
      };
    };
  };

  testScript = ''
    import shlex

    def alice(command):
        return machine.succeed("su - alice -c " + shlex.quote(command))

    def inside(command):
        return alice("cd project && PASSWORD=canary-variable claudebox shell --yes -- bash -c " + shlex.quote(command))

    machine.wait_for_unit("multi-user.target")
    alice("mkdir -p project .ssh other && echo canary-file | tee .ssh/id_ed25519 other/note")

    with subtest("the plan is the module's, and pinned"):
        plan = alice("cd project && claudebox plan --format json")
        assert plan == machine.succeed("cat /etc/claudebox/plans/default.json")
        assert "pinned plan" in alice("claudebox profile list")

    with subtest("what was granted is there"):
        assert "Hello, world!" in inside("hello")
        assert "from the profile" in inside("echo $GREETING")
        inside("echo made > file")
        assert "made" in alice("cat project/file")

    with subtest("what was not is nowhere"):
        assert "canary" not in inside("env; cat /proc/[0-9]*/environ; ls -a ~ ~/.ssh 2>/dev/null; true")
        found = inside("grep -rls 'canary-[fv]' / --exclude-dir=proc --exclude-dir=sys --exclude-dir=store; true")
        assert found.strip() == "", found

    with subtest("nothing is left running"):
        machine.fail("pgrep bwrap")
  '';
}
